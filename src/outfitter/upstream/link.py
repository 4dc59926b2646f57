"""One live connection to one MCP server: requests in, plain JSON results out, in either era.

A link adds to a wire what the protocol means: the era and its headers, time limits with progress, cancellation that
reaches the server, answers to what the server asks, and lists that end. It never repeats a request by itself;
reconnecting is ``connection``, sharing is ``pool``. Results are returned as the server wrote them.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from outfitter.catalog import TimeLimits
from outfitter.errors import OutfitterError, ProtocolViolation, UpstreamError, UpstreamLost, UpstreamTimeout
from outfitter.resolution import ArmedRemote, ArmedServer
from outfitter.upstream.begun import Begun, take_begun
from outfitter.upstream.clock import loop_time
from outfitter.upstream.eras import (
    Agreement,
    Era,
    Identity,
    mirrored_parameters,
    parameter_headers,
    routing_headers,
    stamp,
)
from outfitter.upstream.negotiation import handshake, negotiate
from outfitter.upstream.peers import Attendant, Peer, respond
from outfitter.upstream.wire import STREAM_CLOSED, Inbox, Message, Sessioned, Wire

OnProgress = Callable[[Message], None]
OnNotice = Callable[[Message], None]
OpenWire = Callable[[ArmedServer, Inbox], AbstractAsyncContextManager[Wire]]

MAX_PAGES = 200
MAX_ROUNDS = 10
_TELL_SECONDS = 1.0
_PROBE_SECONDS = 10.0
_ALL_DAY = TimeLimits.of(call=24 * 3600.0)
_CHANGES = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
_OPENING = frozenset({"initialize", "server/discover"})
_INPUT_REQUIRED = "input_required"


@dataclass(slots=True)
class _Waiting:
    """A request under way: its time limit can move while progress comes in."""

    scope: anyio.CancelScope
    idle: float
    last: float
    on_progress: OnProgress | None
    attendant: Attendant | None = None


@dataclass(slots=True)
class Link:
    """A negotiated connection; use it from any task while ``open_link`` holds it open."""

    server: ArmedServer
    identity: Identity
    peer: Peer | None = None
    on_notice: OnNotice | None = None
    _wire: Wire | None = None
    _sessioned: Sessioned | None = None
    _agreement: Agreement | None = None
    _ids: Any = field(default_factory=lambda: itertools.count(1))
    _waiting: dict[int, _Waiting] = field(default_factory=dict[int, _Waiting])
    _mirrored: dict[str, dict[tuple[str, ...], str]] = field(default_factory=dict[str, dict[tuple[str, ...], str]])

    # ── what the wire delivers ──

    def notice(self, message: Message, during: object = None) -> None:
        """Take a notification: progress moves a time limit, the rest goes to whoever listens."""
        if message.get("method") == "notifications/progress":
            self._progress(message)
        elif message.get("method") in {"notifications/message", STREAM_CLOSED}:
            for attendant in self._attendants(during):
                attendant.hear(message)
        if self.on_notice is not None:
            self.on_notice(message)

    def _attendants(self, during: object) -> list[Attendant]:
        """Who stands by the request; by all that are under way when a transport cannot tell which one is meant."""
        waiting = self._waiting.values() if during is None else [self._waiting.get(cast("int", during))]
        return [one.attendant for one in waiting if one is not None and one.attendant is not None]

    def _progress(self, message: Message) -> None:
        params = message.get("params")
        token = cast("Message", params).get("progressToken") if isinstance(params, dict) else None
        waiting = self._waiting.get(token) if isinstance(token, int) else None
        if waiting is None:
            return
        waiting.scope.deadline = min(loop_time() + waiting.idle, waiting.last)
        if waiting.on_progress is not None:
            waiting.on_progress(cast("Message", params))

    async def answer(self, message: Message, during: object = None) -> Message:
        """Answer a request of the server: by who stands by our request, else by the peer, or with a polite no."""
        method, params = str(message.get("method")), message.get("params")
        reply: Message = {"jsonrpc": "2.0", "id": message.get("id")}
        try:
            given = cast("Message", params) if isinstance(params, dict) else {}
            attendants = self._attendants(during)
            peer = attendants[0] if len(attendants) == 1 else self.peer
            return {**reply, "result": await respond(peer, method, given)}
        except UpstreamError as refusal:
            return {**reply, "error": {"code": refusal.rpc_code, "message": refusal.message}}

    # ── asking ──

    @property
    def agreement(self) -> Agreement:
        """Era, version, and what the server says of itself."""
        if self._agreement is None:
            raise ProtocolViolation("the link is not negotiated yet")
        return self._agreement

    @property
    def limits(self) -> TimeLimits:
        """The server's time limits."""
        return self.server.planned.definition.value.limits

    async def request(
        self, method: str, params: Message | None = None, *, limits: TimeLimits | None = None,
        on_progress: OnProgress | None = None, headers: Mapping[str, str] | None = None,
        attendant: Attendant | None = None,
    ) -> Message:  # fmt: skip
        """The result of a request as the server wrote it; UpstreamError, UpstreamTimeout or UpstreamLost otherwise."""
        begun = take_begun(self) if method == "tools/call" else None
        request_id: int = next(self._ids) if begun is None else begun.request_id
        given = dict(params or {})
        if on_progress is not None:
            given["_meta"] = {**cast("Message", given.get("_meta") or {}), "progressToken": request_id}
        extra = dict(headers or {})
        if self._agreement is not None and method not in _OPENING:
            given, extra = self._dress(method, given, extra)
        message: Message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": given}
        now = loop_time() if begun is None else begun.started
        allowed = limits or self.limits
        scope = anyio.CancelScope(deadline=now + min(allowed.call, allowed.total))
        waiting = _Waiting(scope, allowed.call, now + allowed.total, on_progress, attendant)
        return self._result(await self._exchange(message, extra, waiting, begun))

    def _dress(self, method: str, params: Message, headers: dict[str, str]) -> tuple[Message, dict[str, str]]:
        """The request as the agreed era wants it."""
        agreed = self.agreement
        if agreed.era is Era.LEGACY:
            return params, {**self._legacy_headers(agreed.version), **headers}
        stamped = stamp(params, self.identity, agreed.version)
        if not self._is_http:
            return stamped, headers
        routing = routing_headers(method, stamped, agreed.version)
        if method == "tools/call":
            mirrored = self._mirrored.get(str(stamped.get("name")), {})
            routing |= parameter_headers(mirrored, cast("Message", stamped.get("arguments") or {}))
        return stamped, {**routing, **headers}

    @property
    def _is_http(self) -> bool:
        transport = self.server.transport
        return isinstance(transport, ArmedRemote) and not transport.is_sse

    def _legacy_headers(self, version: str) -> dict[str, str]:
        if not self._is_http:
            return {}
        session = self.session_id
        return {"MCP-Protocol-Version": version, **({"Mcp-Session-Id": session} if session else {})}

    @property
    def session_id(self) -> str | None:
        """The handshake era's session over HTTP; None elsewhere."""
        return None if self._sessioned is None else self._sessioned.session_id

    async def _exchange(
        self, message: Message, headers: Mapping[str, str], waiting: _Waiting, begun: Begun | None
    ) -> Message:
        wire = self._wire if begun is None else begun
        if wire is None:
            raise UpstreamLost("the link is closed", where=self._name)
        start, request_id = loop_time() if begun is None else begun.started, cast("int", message["id"])
        is_answered = False
        try:
            with waiting.scope:
                self._waiting[request_id] = waiting
                response = await wire.ask(message, headers)
                is_answered = True
                return response
        except OutfitterError:
            is_answered = True
            raise
        finally:
            self._waiting.pop(request_id, None)
            if not is_answered:
                await self.tell_cancelled(request_id)
        seconds = loop_time() - start
        raise UpstreamTimeout(f"no answer to {message['method']} within {seconds:.1f} s", where=self._name)

    @property
    def _name(self) -> str:
        return f"server '{self.server.planned.alias}'"

    async def tell_cancelled(self, request_id: int) -> None:
        """Let the server stop working on what nobody waits for; a modern HTTP server sees the stream close instead."""
        if self._agreement is None or (self._is_http and self._agreement.era is Era.MODERN) or self._wire is None:
            return
        note: Message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
        with anyio.move_on_after(_TELL_SECONDS, shield=True):
            try:
                await self._wire.tell(note, self._legacy_headers(self._agreement.version))
            except OutfitterError:
                return

    def _result(self, response: Message) -> Message:
        error = response.get("error")
        if isinstance(error, dict):
            said = cast("Message", error)
            code = said.get("code")
            text = str(said.get("message", "the server gave no message"))
            raise UpstreamError(
                text, rpc_code=code if isinstance(code, int) else 0, data=said.get("data"), where=self._name
            )
        result = response.get("result")
        if not isinstance(result, dict):
            raise ProtocolViolation("an answer has neither a result object nor an error", where=self._name)
        return cast("Message", result)

    async def notify(self, method: str, params: Message | None = None) -> None:
        """Send a notification."""
        if self._wire is None:
            raise UpstreamLost("the link is closed", where=self._name)
        message: Message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        headers = {} if self._agreement is None else self._legacy_headers(self._agreement.version)
        await self._wire.tell(message, headers)

    @property
    def wire(self) -> Wire | None:
        """What the link speaks through; None when it is closed."""
        return self._wire

    def next_id(self) -> int:
        """An id that no other request on this link has."""
        return next(self._ids)

    def dress_call(self, name: str, meta: Message) -> tuple[Message, dict[str, str]] | None:
        """The ``_meta`` and headers of a call of this tool; None when its arguments must be repeated in headers."""
        if self._mirrored.get(name):
            return None
        params, headers = self._dress("tools/call", {"name": name, "_meta": meta} if meta else {"name": name}, {})
        return cast("Message", params.get("_meta", {})), headers

    # ── what people do with a server ──

    async def call_tool(
        self, name: str, arguments: Message, *, limits: TimeLimits | None = None, on_progress: OnProgress | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Message:  # fmt: skip
        """The result of a tool call, after answering what the server wanted to know first."""
        params: Message = {"name": name, "arguments": arguments}
        return await self.converse("tools/call", params, limits=limits, on_progress=on_progress, headers=headers)

    async def converse(
        self, method: str, params: Message, *, limits: TimeLimits | None = None, on_progress: OnProgress | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Message:  # fmt: skip
        """A request with the modern era's rounds of input: each question goes to the peer, the state back unread."""
        asked = params
        for _ in range(MAX_ROUNDS):
            result = await self.request(method, asked, limits=limits, on_progress=on_progress, headers=headers)
            if result.get("resultType") != _INPUT_REQUIRED:
                return result
            asked = {**params, "inputResponses": await self._responses(result)}
            if "requestState" in result:
                asked["requestState"] = result["requestState"]
        raise ProtocolViolation(f"the server asked for input more than {MAX_ROUNDS} times", where=self._name)

    async def _responses(self, result: Message) -> Message:
        asked = result.get("inputRequests")
        responses: Message = {}
        for key, question in cast("Message", asked).items() if isinstance(asked, dict) else ():
            content = cast("Message", question) if isinstance(question, dict) else {}
            params = content.get("params")
            given = cast("Message", params) if isinstance(params, dict) else {}
            responses[key] = await respond(self.peer, str(content.get("method")), given)
        return responses

    async def list_tools(self) -> list[Message]:
        """Every tool as the server describes it, all pages; a tool whose header annotations are invalid is left out."""
        tools = await self.list_all("tools/list", "tools")
        if self.agreement.era is Era.LEGACY:
            return tools
        kept: list[Message] = []
        for tool in tools:
            try:
                self._mirrored[str(tool.get("name"))] = mirrored_parameters(tool.get("inputSchema"))
            except ValueError:
                continue
            kept.append(tool)
        return kept

    async def list_all(self, method: str, key: str) -> list[Message]:
        """Every item of a paginated list; ProtocolViolation when the pages do not end."""
        items: list[Message] = []
        seen: set[str] = set()
        params: Message = {}
        for _ in range(MAX_PAGES):
            result = await self.request(method, params)
            page = result.get(key)
            items.extend(cast("Message", item) for item in cast("list[object]", page or []) if isinstance(item, dict))
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return items
            if cursor in seen:
                raise ProtocolViolation(f"{method} gives the same cursor twice", where=self._name)
            seen.add(cursor)
            params = {"cursor": cursor}
        raise ProtocolViolation(f"{method} does not end after {MAX_PAGES} pages", where=self._name)

    async def listen(self) -> None:
        """Hear of changed lists until the server ends the stream; the handshake era hears by itself."""
        if self.agreement.era is Era.MODERN:
            await self.request(
                "subscriptions/listen", {"notifications": dict.fromkeys(_CHANGES, True)}, limits=_ALL_DAY
            )

    # ── opening ──

    async def agree(self, wire: Wire, known: Era | None = None, prefers: Era = Era.MODERN) -> None:
        """Take the wire and settle the era with the server; a known era is not probed."""
        self._wire = wire
        self._sessioned = wire if isinstance(wire, Sessioned) else None  # asked once: the question is slow
        connect = self.limits.connect
        try:
            with anyio.fail_after(connect):
                self._agreement = await negotiate(self._discover, self._initialize, known, prefers)
                if self._agreement.era is Era.LEGACY:
                    await self.notify("notifications/initialized")
                    if self._sessioned is not None:
                        await self._sessioned.listen(self._legacy_headers(self._agreement.version))
        except TimeoutError:
            raise UpstreamTimeout(f"no handshake within {connect:g} s", where=self._name) from None

    async def _discover(self, version: str) -> Message:
        params = stamp({}, self.identity, version)
        headers = routing_headers("server/discover", params, version)
        return await self.request("server/discover", params, limits=TimeLimits.of(_PROBE_SECONDS), headers=headers)

    async def _initialize(self) -> Message:
        return await self.request("initialize", handshake(self.identity), limits=TimeLimits.of(self.limits.connect))

    async def renew(self) -> None:
        """A new handshake on the same wire, after the server forgot our session."""
        if self._wire is None:
            raise UpstreamLost("the link is closed", where=self._name)
        await self.agree(self._wire, Era.LEGACY)

    @property
    def is_usable(self) -> bool:
        """Whether a request can still be asked."""
        return self._wire is not None and self._wire.lost is None

    async def wait_lost(self) -> OutfitterError:
        """Wait until the connection under the link is gone, and say why."""
        if self._wire is None:
            return UpstreamLost("the link is closed", where=self._name)
        return await self._wire.wait_lost()

    async def detach(self) -> None:
        """Give the wire up: nothing more can be asked, and a session of the handshake era ends."""
        wire, self._wire, self._sessioned = self._sessioned, None, None
        if wire is not None and wire.session_id is not None and self._agreement is not None:
            headers = {"MCP-Protocol-Version": self._agreement.version, "Mcp-Session-Id": wire.session_id}
            with anyio.move_on_after(_TELL_SECONDS, shield=True):
                await wire.end_session(headers)


@asynccontextmanager
async def open_link(
    server: ArmedServer,
    open_wire: OpenWire,
    *,
    peer: Peer | None = None,
    on_notice: OnNotice | None = None,
    known: Era | None = None,
    prefers: Era = Era.MODERN,
) -> AsyncGenerator[Link]:
    """A negotiated link, closed when the block ends; opened and closed by the calling task."""
    identity = Identity(capabilities=peer.capabilities if peer is not None else {})
    link = Link(server, identity, peer, on_notice)
    async with open_wire(server, link) as wire:
        await link.agree(wire, known, prefers)
        try:
            yield link
        finally:
            await link.detach()
