"""What does a scripted server answer? The protocol of both eras, without any wire.

``answer`` turns one request into the steps of its exchange. Tools are in ``tools``; who carries the steps out is the
``conversation``; of the faults only endless lists are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeAlias

from outfitter.testing.exchange import (
    CAPABILITIES_KEY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NO_RESOURCE,
    SERVER_KEY,
    SUBSCRIPTION_KEY,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Desk,
    Listen,
    Message,
    Refusal,
    Request,
    Say,
    Steps,
    Work,
    notification,
    part,
)
from outfitter.testing.faults import EndlessCursor
from outfitter.testing.script import MODERN_VERSION, ScriptedResource, ScriptedTool
from outfitter.testing.tools import BEHAVIOURS

Handler: TypeAlias = Callable[[Desk, Request], "Message | Work"]

CACHED = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)


def is_modern(message: Message) -> bool:
    """Whether a message carries a version of its own, as the modern era wants it."""
    return VERSION_KEY in part(part(message, "params"), "_meta")


def answer(desk: Desk, request: Request) -> Steps:
    """The steps of one exchange; the last one says the response."""
    try:
        result = yield from _work(desk, request)
    except Refusal as refusal:
        yield Say(refusal.reply(request.id))
        return
    except (TypeError, ValueError) as error:
        yield Say(Refusal(INVALID_PARAMS, f"bad arguments: {error}").reply(request.id))
        return
    yield Say({"jsonrpc": "2.0", "id": request.id, "result": _finished(desk, request, result)})


def _work(desk: Desk, request: Request) -> Work:
    check(desk, request)
    handlers = _MODERN if request.modern else _LEGACY
    handler = handlers.get(request.method)
    if handler is None:
        raise Refusal(METHOD_NOT_FOUND, f"no such method: {request.method}")
    outcome = handler(desk, request)
    if isinstance(outcome, Generator):
        return (yield from outcome)
    return outcome


def check(desk: Desk, request: Request) -> None:
    """Refuse a request that no server of its era would take."""
    if request.modern:
        _check_modern(desk, request)
    elif request.method == "initialize":
        if "legacy" not in desk.script.eras:
            raise _unsupported(desk, request.params.get("protocolVersion"))
    elif "legacy" not in desk.script.eras:
        raise Refusal(INVALID_PARAMS, f"_meta lacks {VERSION_KEY} and {CAPABILITIES_KEY}")
    elif desk.peer.version is None and request.method not in {"ping", "server/discover"}:
        raise Refusal(INVALID_REQUEST, "initialize comes first")


def _check_modern(desk: Desk, request: Request) -> None:
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in request.meta]
    if missing:
        raise Refusal(INVALID_PARAMS, f"_meta lacks {' and '.join(missing)}")
    if request.meta[VERSION_KEY] != MODERN_VERSION:
        raise _unsupported(desk, request.meta[VERSION_KEY])


def _unsupported(desk: Desk, version: object) -> Refusal:
    data = {"supported": list(desk.script.versions), "requested": version}
    return Refusal(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _finished(desk: Desk, request: Request, result: Message) -> Message:
    """The result with what the modern era wants on each."""
    if not request.modern:
        return result
    done: Message = {"resultType": "complete", **result}
    done["_meta"] = {SERVER_KEY: _info(desk), **part(done, "_meta")}
    if request.method in CACHED and done["resultType"] == "complete":
        done |= {"ttlMs": desk.script.ttl_ms, "cacheScope": desk.script.cache_scope}
    return done


def _info(desk: Desk) -> Message:
    return {"name": desk.script.name, "version": "1.0"}


def _capabilities(desk: Desk, *, modern: bool) -> Message:
    changes = {"listChanged": True}
    capabilities: Message = {"tools": changes, "completions": {}, "logging": {}}
    if desk.script.resources:
        capabilities["resources"] = {**changes, "subscribe": True}
    if desk.script.prompts:
        capabilities["prompts"] = changes
    if modern:
        del capabilities["logging"]
    return capabilities


def _initialize(desk: Desk, request: Request) -> Message:
    wanted, versions = request.params.get("protocolVersion"), desk.script.legacy_versions
    desk.peer.version = wanted if wanted in versions else versions[0]
    desk.peer.capabilities = part(request.params, "capabilities")
    return {
        "protocolVersion": desk.peer.version,
        "capabilities": _capabilities(desk, modern=False),
        "serverInfo": _info(desk),
        "instructions": desk.script.instructions,
    }


def _discover(desk: Desk, _request: Request) -> Message:
    return {
        "supportedVersions": list(desk.script.versions),
        "capabilities": _capabilities(desk, modern=True),
        "instructions": desk.script.instructions,
    }


def listen(_desk: Desk, request: Request) -> Work:
    """Acknowledge a subscription and keep it open."""
    wanted = part(request.params, "notifications")
    mark = {SUBSCRIPTION_KEY: request.id}
    yield Say(notification("notifications/subscriptions/acknowledged", notifications=wanted, _meta=mark))
    yield Listen(wanted)
    return {"_meta": mark}


def _ping(_desk: Desk, _request: Request) -> Message:
    return {}


def _set_level(desk: Desk, request: Request) -> Message:
    desk.peer.log_level = str(request.params.get("level"))
    return {}


def _subscribe(desk: Desk, request: Request) -> Message:
    desk.peer.watched.add(_resource(desk, request).uri)
    return {}


def _unsubscribe(desk: Desk, request: Request) -> Message:
    desk.peer.watched.discard(_resource(desk, request).uri)
    return {}


def _page(desk: Desk, request: Request, key: str, items: Sequence[Message]) -> Message:
    """One page of a list. A cursor is the place to go on from."""
    cursor = request.params.get("cursor")
    start = 0 if cursor is None else _place(cursor)
    endless = next((fault for fault in desk.script.faults if isinstance(fault, EndlessCursor)), None)
    if endless is not None:
        return {key: list(items), "nextCursor": "1" if endless.loop else str(start + 1)}
    size = desk.script.page_size or len(items) or 1
    page: Message = {key: list(items[start : start + size])}
    if start + size < len(items):
        page["nextCursor"] = str(start + size)
    return page


def _place(cursor: object) -> int:
    if not isinstance(cursor, str) or not cursor.isdecimal():
        raise Refusal(INVALID_PARAMS, "no such cursor")
    return int(cursor)


def _tools(desk: Desk) -> tuple[ScriptedTool, ...]:
    extra = (ScriptedTool("appeared", "Came with a change of the list", kind="echo"),)
    return (*desk.script.tools, *extra) if "tools" in desk.ledger.touched else desk.script.tools


def _list_tools(desk: Desk, request: Request) -> Message:
    return _page(desk, request, "tools", [tool.definition() for tool in _tools(desk)])


def _call_tool(desk: Desk, request: Request) -> Message | Work:
    tool = next((tool for tool in _tools(desk) if tool.name == request.target), None)
    if tool is None:
        raise Refusal(INVALID_PARAMS, f"no such tool: {request.target}")
    if tool.behaviour == "answer":
        return dict(tool.result)
    behaviour = BEHAVIOURS.get(tool.behaviour)
    if behaviour is None:
        raise Refusal(INVALID_PARAMS, f"the script gives {tool.name} the kind {tool.behaviour}, which does not exist")
    return behaviour(desk, request, part(request.params, "arguments"))


def _list_resources(desk: Desk, request: Request) -> Message:
    return _page(desk, request, "resources", [item.definition() for item in desk.script.resources])


def _list_templates(desk: Desk, request: Request) -> Message:
    return _page(desk, request, "resourceTemplates", [{"uriTemplate": "test://{name}", "name": "by-name"}])


def _read_resource(desk: Desk, request: Request) -> Message:
    found = _resource(desk, request)
    return {"contents": [{"uri": found.uri, "mimeType": found.mime, "text": found.text}]}


def _resource(desk: Desk, request: Request) -> ScriptedResource:
    found = next((item for item in desk.script.resources if item.uri == request.target), None)
    if found is None:
        code = INVALID_PARAMS if request.modern else NO_RESOURCE
        raise Refusal(code, f"no such resource: {request.target}", {"uri": request.target})
    return found


def _list_prompts(desk: Desk, request: Request) -> Message:
    return _page(desk, request, "prompts", [prompt.definition() for prompt in desk.script.prompts])


def _get_prompt(desk: Desk, request: Request) -> Message:
    prompt = next((item for item in desk.script.prompts if item.name == request.target), None)
    if prompt is None:
        raise Refusal(INVALID_PARAMS, f"no such prompt: {request.target}")
    text, given = prompt.text, part(request.params, "arguments")
    for name in prompt.arguments:
        if name not in given:
            raise Refusal(INVALID_PARAMS, f"the prompt needs {name}")
        text = text.replace(f"{{{name}}}", str(given[name]))
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def _complete(desk: Desk, request: Request) -> Message:
    name = part(request.params, "ref").get("name")
    start = str(part(request.params, "argument").get("value", ""))
    values = [value for prompt in desk.script.prompts if prompt.name == name for value in prompt.values]
    found = [value for value in values if value.startswith(start)]
    return {"completion": {"values": found, "total": len(found), "hasMore": False}}


_SHARED: Mapping[str, Handler] = {
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
}
_LEGACY: Mapping[str, Handler] = {
    **_SHARED,
    "initialize": _initialize,
    "ping": _ping,
    "logging/setLevel": _set_level,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _unsubscribe,
}
_MODERN: Mapping[str, Handler] = {**_SHARED, "server/discover": _discover, "subscriptions/listen": listen}
