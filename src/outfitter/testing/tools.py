"""What do the built-in tools of a scripted server do? One function per kind.

Each gets the desk, the call and its arguments, and gives a result or the steps towards one. Listing and finding tools
is ``behaviour``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from outfitter.testing.exchange import (
    CAPABILITIES_KEY,
    INVALID_PARAMS,
    LOG_LEVEL_KEY,
    MISSING_CAPABILITY,
    Announce,
    Ask,
    Desk,
    Message,
    Pause,
    Refusal,
    Request,
    Say,
    Until,
    Work,
    notification,
    part,
)

Behaviour: TypeAlias = Callable[[Desk, Request, Message], "Message | Work"]

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_QUESTIONS: Mapping[str, tuple[str, str, Message]] = {
    "elicitation": (
        "elicitation",
        "elicitation/create",
        {
            "mode": "form",
            "message": "What is your name?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
    ),
    "sampling": (
        "sampling",
        "sampling/createMessage",
        {"messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}], "maxTokens": 10},
    ),
    "roots": ("roots", "roots/list", {}),
}


def result_of(value: Any, *, failed: bool = False) -> Message:  # noqa: ANN401 - any JSON value
    """A tool result that holds a value as text and as it is."""
    result: Message = {"content": [{"type": "text", "text": json.dumps(value)}], "isError": failed}
    if isinstance(value, dict):
        result["structuredContent"] = value
    return result


def failure(text: str) -> Message:
    """A tool result that says what went wrong."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _echo(_desk: Desk, _request: Request, arguments: Message) -> Message:
    return result_of(arguments)


def _headers(_desk: Desk, request: Request, _arguments: Message) -> Message:
    return result_of({**request.surroundings, "meta": dict(request.meta)})


def _add(_desk: Desk, _request: Request, arguments: Message) -> Message:
    a, b = arguments.get("a"), arguments.get("b")
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return failure("a and b must be numbers")
    return result_of({"sum": a + b})


def _sleep(_desk: Desk, request: Request, arguments: Message) -> Work:
    seconds = float(arguments.get("seconds", 60))
    yield from _report(request, 0, 1)
    yield Pause(seconds)
    return result_of({"slept": seconds})


def _progress(_desk: Desk, request: Request, arguments: Message) -> Work:
    count, seconds = int(arguments.get("n", 3)), float(arguments.get("seconds", 0))
    for step in range(1, count + 1):
        yield Pause(seconds)
        yield from _report(request, step, count)
    return result_of({"steps": count})


def _report(request: Request, done: int, total: int) -> Work:
    token = request.meta.get("progressToken")
    if token is not None:
        yield Say(notification("notifications/progress", progressToken=token, progress=done, total=total))
    return {}


def _big(_desk: Desk, _request: Request, arguments: Message) -> Message:
    return {"content": [{"type": "text", "text": "x" * int(arguments.get("size", 1024))}], "isError": False}


def _fail(_desk: Desk, _request: Request, arguments: Message) -> Message:
    return failure(str(arguments.get("message", "it failed")))


def _rpc_error(_desk: Desk, _request: Request, arguments: Message) -> Message:
    raise Refusal(int(arguments.get("code", -1)), str(arguments.get("message", "refused")), arguments.get("data"))


def _log(desk: Desk, request: Request, arguments: Message) -> Work:
    level, text = str(arguments.get("level", "info")), arguments.get("text", "logged")
    wanted = request.meta.get(LOG_LEVEL_KEY) if request.modern else desk.peer.log_level or "debug"
    if wanted in LEVELS and level in LEVELS and LEVELS.index(level) >= LEVELS.index(wanted):
        yield Say(notification("notifications/message", level=level, logger=desk.script.name, data=text))
    return result_of({"level": level})


def _touch(desk: Desk, _request: Request, arguments: Message) -> Work:
    uri = arguments.get("uri")
    if isinstance(uri, str):
        yield Announce("notifications/resources/updated", {"uri": uri})
        return result_of({"updated": uri})
    kind = str(arguments.get("list", "tools"))
    desk.ledger.touched ^= {kind}
    yield Announce(f"notifications/{kind}/list_changed")
    return result_of({"changed": kind})


def _stats(desk: Desk, _request: Request, arguments: Message) -> Work:
    yield Until(int(arguments.get("until_cancelled", 0)), int(arguments.get("until_listeners", 0)))
    return result_of(desk.ledger.snapshot())


def _ask(desk: Desk, request: Request, arguments: Message) -> Work:
    what, rounds = str(arguments.get("what", "elicitation")), int(arguments.get("rounds", 1))
    if what not in _QUESTIONS:
        return failure(f"nobody can be asked for {what}")
    capability, method, params = _QUESTIONS[what]
    if request.modern:
        return _next_round(desk, request, what, rounds)
    if capability not in desk.peer.capabilities:
        return failure(f"the client does not offer {capability}")
    answers: list[Any] = []
    for _ in range(rounds):
        response = yield Ask(method, params)
        answers.append(response.get("result", response.get("error")))
    return result_of({"answers": answers})


def _next_round(desk: Desk, request: Request, what: str, rounds: int) -> Message:
    """The modern way of asking: a result that asks for more, until every round is answered."""
    capability, method, params = _QUESTIONS[what]
    if capability not in part(request.meta, CAPABILITIES_KEY):
        raise Refusal(
            MISSING_CAPABILITY, f"this needs {capability}", {"requiredCapabilities": {capability: dict[str, Any]()}}
        )
    state, given = request.params.get("requestState"), part(request.params, "inputResponses")
    if state is not None and state not in desk.ledger.states:
        raise Refusal(INVALID_PARAMS, "requestState was not made here")
    answers: list[Any] = [] if state is None else list(desk.ledger.states[state])
    key = f"{what}-{len(answers)}"
    if state is not None and key in given:
        answers.append(given[key])
    if len(answers) >= rounds:
        return result_of({"answers": answers})
    state = f"{desk.script.name}:{len(desk.ledger.states)}"
    desk.ledger.states[state] = answers
    question = {"method": method, "params": params}
    return {
        "resultType": "input_required",
        "inputRequests": {f"{what}-{len(answers)}": question},
        "requestState": state,
    }


BEHAVIOURS: Mapping[str, Behaviour] = {
    "echo": _echo,
    "headers": _headers,
    "add": _add,
    "sleep": _sleep,
    "progress": _progress,
    "big": _big,
    "fail": _fail,
    "rpc_error": _rpc_error,
    "ask": _ask,
    "log": _log,
    "touch": _touch,
    "stats": _stats,
}
