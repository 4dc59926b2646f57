"""The fixture's tools that want input before they answer, as the modern era asks: by a result, round by round.

What a tool must remember between two rounds travels in a sealed state; one that was changed on the way is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json

import mcp_types as types
from mcp.shared.exceptions import MCPError

from conformance.fixture_tools import Answer, Context, FixtureTool, Json, Params, Shop, say, shape

_SEAL = b"the fixture keeps no secrets"
_TEXT: Json = {"type": "string"}
_YES_OR_NO: Json = {"type": "boolean"}
_ROOTS: Json = {"method": "roots/list"}
_SEALED_BYTES = 32


def question(message: str, **properties: Json) -> Json:
    """A form for the user."""
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": shape((), **properties)}}


def _sampling(prompt: str) -> Json:
    content = {"type": "text", "text": prompt}
    params = {"messages": [{"role": "user", "content": content}], "maxTokens": 100}
    return {"method": "sampling/createMessage", "params": params}


def want(state: str | None = None, **requests: Json) -> types.InputRequiredResult:
    """The result that asks, with a sealed state if there is one."""
    result: Json = {"resultType": "input_required", "inputRequests": requests}
    if state is not None:
        result["requestState"] = _seal(state)
    return types.InputRequiredResult.model_validate(result)


def _seal(state: str) -> str:
    mark = hmac.new(_SEAL, state.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mark + state.encode()).decode()


def _open(sealed: str | None) -> str | None:
    if sealed is None:
        return None
    try:
        raw = base64.urlsafe_b64decode(sealed.encode())
    except (binascii.Error, ValueError):
        raw = b""
    mark, state = raw[:_SEALED_BYTES], raw[_SEALED_BYTES:]
    is_ours = hmac.compare_digest(mark, hmac.new(_SEAL, state, hashlib.sha256).digest())
    if not is_ours or base64.urlsafe_b64encode(raw).decode() != sealed:
        raise MCPError(code=types.INVALID_PARAMS, message="the request state was changed on its way")
    return state.decode()


def given(params: types.CallToolRequestParams | types.GetPromptRequestParams, key: str, field: str) -> object:
    """What the user wrote into a field of a form; None when the form did not come back."""
    answer = (params.input_responses or {}).get(key)
    return answer.content.get(field) if isinstance(answer, types.ElicitResult) and answer.content else None


async def _name(_shop: Shop, _context: Context, params: Params) -> Answer:
    name = given(params, "user_name", "name")
    return want(user_name=question("What is your name?", name=_TEXT)) if name is None else say(f"Hello, {name}!")


async def _capital(_shop: Shop, _context: Context, params: Params) -> Answer:
    answer = (params.input_responses or {}).get("capital_question")
    if isinstance(answer, types.CreateMessageResult):
        return say(f"Model said: {getattr(answer.content, 'text', '')}")
    return want(capital_question=_sampling("What is the capital of France?"))


async def _roots(_shop: Shop, _context: Context, params: Params) -> Answer:
    answer = (params.input_responses or {}).get("client_roots")
    return say(f"{len(answer.roots)} roots") if isinstance(answer, types.ListRootsResult) else want(client_roots=_ROOTS)


async def _state(_shop: Shop, _context: Context, params: Params) -> Answer:
    if given(params, "confirm", "ok") is not None and _open(params.request_state) == "once":
        return say("state-ok")
    return want("once", confirm=question("Go on?", ok=_YES_OR_NO))


async def _changed_state(_shop: Shop, _context: Context, params: Params) -> Answer:
    state = _open(params.request_state)
    return want("first", confirm=question("Go on?", ok=_YES_OR_NO)) if state is None else say(f"state-ok: {state}")


async def _all_at_once(_shop: Shop, _context: Context, params: Params) -> Answer:
    wanted: Json = {
        "user_name": question("What is your name?", name=_TEXT),
        "greeting": _sampling("Greet the user"),
        "client_roots": _ROOTS,
    }
    return (
        say("everything is here") if wanted.keys() <= (params.input_responses or {}).keys() else want("all", **wanted)
    )


async def _rounds(_shop: Shop, _context: Context, params: Params) -> Answer:
    known: Json = json.loads(_open(params.request_state) or "{}")
    name, color = given(params, "step1", "name"), given(params, "step2", "color")
    if "name" in known and color is not None:
        return say(f"{known['name']} likes {color}")
    if known and name is not None:
        return want(json.dumps({"name": name}), step2=question("Which colour do you like?", color=_TEXT))
    return want(json.dumps({"begun": True}), step1=question("What is your name?", name=_TEXT))


async def _what_can_be_asked(_shop: Shop, context: Context, _params: Params) -> Answer:
    capabilities = context.session.client_capabilities or types.ClientCapabilities()
    wanted: Json = {}
    if capabilities.sampling is not None:
        wanted["sample"] = _sampling("Say hello")
    if capabilities.elicitation is not None:
        wanted["ask"] = question("What is your name?", name=_TEXT)
    return want("asked", **wanted)


_PREFIX = "test_input_required_result"
QUESTIONS: tuple[FixtureTool, ...] = (
    FixtureTool(f"{_PREFIX}_elicitation", "Asks for a name", _name),
    FixtureTool("test_streaming_elicitation", "Asks for a name", _name),
    FixtureTool(f"{_PREFIX}_sampling", "Has the client sample", _capital),
    FixtureTool(f"{_PREFIX}_list_roots", "Asks for the roots", _roots),
    FixtureTool(f"{_PREFIX}_request_state", "Wants its state back", _state),
    FixtureTool(f"{_PREFIX}_tampered_state", "Refuses a changed state", _changed_state),
    FixtureTool(f"{_PREFIX}_multiple_inputs", "Asks three things at once", _all_at_once),
    FixtureTool(f"{_PREFIX}_multi_round", "Asks twice", _rounds),
    FixtureTool(f"{_PREFIX}_capabilities", "Asks what the client can answer", _what_can_be_asked),
)
