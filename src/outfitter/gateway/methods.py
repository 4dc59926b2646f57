"""What the gateway answers: one function per method of the protocol, for both eras alike."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio.to_thread

from outfitter.calls import SCHEME
from outfitter.errors import OutfitterError, UpstreamError
from outfitter.gateway.asked import Asked, Next
from outfitter.gateway.faults import INVALID_PARAMS, METHOD_NOT_FOUND, NOT_FOUND_LEGACY, Rejected
from outfitter.gateway.forwarding import Forwarding
from outfitter.gateway.kept import read_kept, with_own
from outfitter.gateway.lines import LIST_KEYS, Line
from outfitter.gateway.outages import outage_error
from outfitter.gateway.searching import META_LIST, is_searched
from outfitter.gateway.views import Item, View, as_object
from outfitter.gateway.visitors import Visitor
from outfitter.upstream import Era, Message

PAGE = 500


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client at one endpoint."""

    view: View
    visitor: Visitor
    method: str
    params: Message = field(repr=False)
    headers: Sequence[tuple[str, str]] | None = field(default=None, repr=False)
    """Those of a modern request over HTTP, which must say what the body says."""


@dataclass(frozen=True, slots=True)
class Methods:
    """Answers requests; tool calls go through the pipeline."""

    call: Next

    async def answer(self, request: Request) -> Message:
        """The result of a request; Rejected, or the server's own error, otherwise."""
        handler = _TABLE.get(request.method)
        if handler is None:
            raise Rejected(f"Method not found: {request.method}", rpc_code=METHOD_NOT_FOUND, status=404)
        return await handler(self, request)

    async def list_items(self, request: Request) -> Message:
        """One page of a merged list."""
        if request.method == "tools/list" and await is_searched(request.view, request.visitor):
            shown = META_LIST
        else:
            listing = await request.view.listing(request.method, request.visitor, is_fresh=True)
            shown = [item.shown for item in listing.items.values()]
        if request.view.result_limit is not None:
            shown = with_own(request.method, shown)
        whose = f"{request.method} {request.view.seat.agent}/{request.view.server or ''}"
        start = _read_cursor(request.params.get("cursor"), whose, len(shown))
        result: Message = {LIST_KEYS[request.method]: shown[start : start + PAGE]}
        if start + PAGE < len(shown):
            result["nextCursor"] = _write_cursor(start + PAGE, whose)
        return result

    async def call_tool(self, request: Request) -> Message:
        """A tool call, through every step."""
        return await self.call(Asked(request.view, request.visitor, request.params, uuid.uuid4().hex, request.headers))

    async def read_resource(self, request: Request) -> Message:
        """A resource, from whoever has it."""
        uri = _text(request.params, "uri")
        if uri.startswith(SCHEME) and request.view.result_limit is not None:
            return await _read_kept(request, uri)
        item = await request.view.owner_of(uri, request.visitor)
        if item is None:
            raise _no_resource(uri, request.visitor)
        try:
            return await _forward(request, item, request.params)
        except UpstreamError as error:
            if error.rpc_code == NOT_FOUND_LEGACY and request.visitor.era is Era.MODERN:
                raise _no_resource(uri, request.visitor) from None
            raise

    async def get_prompt(self, request: Request) -> Message:
        """A prompt, from whoever has it."""
        name = _text(request.params, "name")
        item = (await request.view.listing("prompts/list", request.visitor)).items.get(name)
        if item is None:
            raise Rejected(f"Unknown prompt: {name}", rpc_code=INVALID_PARAMS)
        return await _forward(request, item, {**request.params, "name": item.name})

    async def complete(self, request: Request) -> Message:
        """Suggestions for an argument of a prompt or a resource template."""
        reference = as_object(request.params.get("ref"))
        if reference.get("type") == "ref/prompt":
            name = _text(reference, "name")
            item = (await request.view.listing("prompts/list", request.visitor)).items.get(name)
            params = {**request.params, "ref": {**reference, "name": item.name}} if item else request.params
        else:
            item = await request.view.owner_of(_text(reference, "uri"), request.visitor)
            params = request.params
        if item is None:
            raise Rejected("there is nothing of that name to complete", rpc_code=INVALID_PARAMS)
        return await _forward(request, item, params)

    async def set_level(self, request: Request) -> Message:
        """Tell every server which log messages are wanted (handshake era); those that have none are left out."""
        params = {"level": _text(request.params, "level")}

        async def tell(line: Line) -> None:
            agreed = await line.agreement()
            # A modern server is told with each request; where tools are searched, nobody is started for this.
            if agreed.era is Era.LEGACY and "logging" in agreed.capabilities:
                await Forwarding(line, request.visitor, "logging/setLevel", params).send()

        if not await is_searched(request.view, request.visitor):
            await request.view.gather(request.visitor, tell)
        return {}

    async def ping(self, request: Request) -> Message:
        """Nothing, at once."""
        del request
        return {}


Handler = Callable[[Methods, Request], Awaitable[Message]]
_TABLE: Mapping[str, Handler] = {
    "ping": Methods.ping,
    "tools/list": Methods.list_items,
    "tools/call": Methods.call_tool,
    "resources/list": Methods.list_items,
    "resources/templates/list": Methods.list_items,
    "resources/read": Methods.read_resource,
    "prompts/list": Methods.list_items,
    "prompts/get": Methods.get_prompt,
    "completion/complete": Methods.complete,
    "logging/setLevel": Methods.set_level,
}


async def _forward(request: Request, item: Item, params: Message) -> Message:
    try:
        return await Forwarding(item.line, request.visitor, request.method, params).send()
    except (UpstreamError, Rejected):
        raise
    except OutfitterError as error:
        raise outage_error(request.view, item.alias, error) from None


async def _read_kept(request: Request, uri: str) -> Message:
    """A result that was kept aside for this agent; somebody else's is not there."""
    view = request.view
    found = await anyio.to_thread.run_sync(read_kept, uri, view.seat, view.governing.shelf)
    if found is None:
        raise _no_resource(uri, request.visitor)
    return found


def _text(params: Mapping[str, object], key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise Rejected(f"'{key}' must be a text", rpc_code=INVALID_PARAMS)
    return value


def _no_resource(uri: str, visitor: Visitor) -> OutfitterError:
    code = INVALID_PARAMS if visitor.era is Era.MODERN else NOT_FOUND_LEGACY
    return Rejected(f"Resource not found: {uri}", rpc_code=code, data={"uri": uri})


def _write_cursor(start: int, whose: str) -> str:
    """A place in one list; it says nothing in another."""
    mark = hashlib.sha256(f"{whose} {start}".encode()).digest()[:9]
    return base64.urlsafe_b64encode(start.to_bytes(4, "big") + mark).decode().rstrip("=")


def _read_cursor(cursor: object, whose: str, count: int) -> int:
    if cursor is None:
        return 0
    places = range(PAGE, count, PAGE)
    start = next((place for place in places if _write_cursor(place, whose) == cursor), None)
    if start is None:
        raise Rejected("the cursor is not one of this list", rpc_code=INVALID_PARAMS)
    return start
