"""The HTTP face: streamable HTTP in both eras on one URL per agent and one per agent and server.

An answer is plain JSON when nothing is said before it, and a stream of events otherwise, or when the client prefers
one. A client that goes away cancels what it asked, unless its stream can be taken up again. Who may come in is
``gate``; what each era does is ``front_modern`` and ``front_legacy``; how another worker answers is ``relaying``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio

from outfitter.errors import NotFound, OutfitterError, Unavailable
from outfitter.gateway import modern
from outfitter.gateway.desk import Desk
from outfitter.gateway.faults import rpc_error
from outfitter.gateway.front_legacy import RESUMABLE_SINCE, SESSION, VERSIONS, LegacyFront
from outfitter.gateway.front_modern import ModernFront, refuse_listening_without_stream
from outfitter.gateway.gate import MAX_BODY, Arrival, Gate, Turned
from outfitter.gateway.listening import EVERYTHING, Ear
from outfitter.gateway.parking import handle_of
from outfitter.gateway.relaying import Relay
from outfitter.gateway.streams import (
    Receive,
    Send,
    begin_events,
    decode,
    meant,
    prefers_events,
    send_body,
    send_json,
    send_replay,
    send_stream,
    wait_gone,
)
from outfitter.gateway.tokens import is_ours
from outfitter.gateway.views import as_object
from outfitter.gateway.visitors import Principal
from outfitter.gateway.visits import Visit
from outfitter.gateway.words import Final, Replay, Words
from outfitter.upstream import Message

METRICS = "/metrics"
Scope: TypeAlias = MutableMapping[str, Any]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""
_JSON, _EVENTS = "application/json", "text/event-stream"
_OK, _NEEDS_TOKEN = 200, 401


@dataclass(slots=True)
class HttpFront:
    """An ASGI application."""

    desk: Desk
    gate: Gate
    relay: Relay | None = None
    """Where there are several workers: the way to the others."""
    aside: Callable[[Scope], Application | None] | None = None
    """Who answers a request in the place of the gateway, if anybody does: what else is on the same port."""
    _modern: ModernFront = field(init=False)
    _legacy: LegacyFront = field(init=False)

    def __post_init__(self) -> None:
        """Both eras answer from the same desk."""
        self._modern, self._legacy = ModernFront(self.desk), LegacyFront(self.desk)
        if self.relay is not None:
            self.desk.visits.mark = self.desk.lot.mark = self.relay.mark

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        other = None if self.aside is None else self.aside(scope)
        if other is not None:
            scope.setdefault("state", {})["gateway"] = self  # what else is on the port may ask as an agent would
            await other(scope, receive, send)
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        try:
            arrival = self.gate.arrive(scope["method"], scope["path"], headers)
            if self.desk.seats.runs is not None or not self.desk.seats.has(arrival.agent):
                await self._prepare(arrival)
            principal = self.gate.admit(arrival)
            rest = await self._pass_on(arrival, principal, receive, send)
            if rest is not None:
                await self._route(arrival, principal, rest, send)
        except Turned as turned:
            body = turned.text.encode()
            if self.relay is not None and turned.status == _OK and scope["path"] == METRICS:
                body = (await self.relay.gather(METRICS, headers, turned.text)).encode()
            await send_body(send, turned.status, body, ("content-type", "text/plain; charset=utf-8"), *turned.headers)

    async def _prepare(self, arrival: Arrival) -> None:
        """Have the seat armed, if the client may come in: the limits of its agent are asked next."""
        try:
            principal = self.gate.recognise(arrival)
        except Turned as turned:
            # The gate says so in a moment, and counts it; a token of a run may just have been made by another process.
            runs = self.desk.seats.runs
            if turned.status == _NEEDS_TOKEN and runs is not None and is_ours(arrival.header("authorization") or ""):
                await runs.look_again()
            return
        if not self.desk.seats.has(arrival.agent) and self.desk.seats.name_of(principal) == arrival.agent:
            with suppress(NotFound):  # an agent that is not there has no limits
                await self.desk.seats.arm(arrival.agent)

    async def _pass_on(self, arrival: Arrival, principal: Principal, receive: Receive, send: Send) -> Receive | None:
        """What is still to be received; None when the worker that holds the credentials of a run has answered."""
        runs = self.desk.seats.runs
        if self.relay is None or principal.run_id is None or runs is None:
            return receive
        with _told():
            holder = await runs.holder(principal.run_id)
        if self.relay.owner_of(holder) is None:
            return receive
        body = await _read(receive) if arrival.method == "POST" else b""
        if await self.relay.pass_on(holder, arrival, body, receive, send):
            return None
        return _received(body, receive)

    async def _route(self, arrival: Arrival, principal: Principal, receive: Receive, send: Send) -> None:
        with _told():
            await self.desk.open_view(self.desk.seats.name_of(principal), arrival.server)
        is_modern = arrival.header("mcp-protocol-version") not in {None, *VERSIONS}
        if arrival.method == "POST":
            await self._post(arrival, principal, receive, send)
        elif is_modern or arrival.method not in {"GET", "DELETE"}:
            raise Turned(405, "only POST is served here", ("allow", "POST"))
        elif arrival.method == "GET":
            await self._stream(arrival, principal, receive, send)
        else:
            visit = await self._visit(arrival, principal, b"", receive, send)
            if visit is not None:
                self.desk.visits.end(visit.id)
                await send_body(send, 200, b"")

    async def _visit(
        self, arrival: Arrival, principal: Principal, body: bytes, receive: Receive, send: Send
    ) -> Visit | None:
        """The visit that a request belongs to; None when it is another worker's, who has answered."""
        if self.relay is not None and await self.relay.pass_on(arrival.header(SESSION), arrival, body, receive, send):
            return None
        return self._legacy.find(arrival, principal)

    # ── POST ──

    async def _post(self, arrival: Arrival, principal: Principal, receive: Receive, send: Send) -> None:
        announced = _announced(arrival)
        with self.desk.witness(principal, announced):
            if (arrival.header("content-type") or "").partition(";")[0].strip().lower() != _JSON:
                raise Turned(415, "the body must be application/json")
            if not arrival.accepts(_JSON) or not arrival.accepts(_EVENTS):
                raise Turned(406, "accept application/json and text/event-stream")
            body = await _read(receive)
        message = decode(body)
        version = arrival.header("mcp-protocol-version")
        if isinstance(message, Final):
            self.desk.note_refused(principal, {**announced, **meant(body)}, message.message["error"]["code"])
            await send_json(send, message.status, message.message)
        elif version in {None, *VERSIONS}:
            await self._post_legacy(arrival, principal, message, body, receive, send)
        elif not await self._is_elsewhere(arrival, message, body, receive, send):
            await self._post_modern(arrival, principal, message, receive, send)

    async def _is_elsewhere(
        self, arrival: Arrival, message: Message, body: bytes, receive: Receive, send: Send
    ) -> bool:
        """Whether the request goes on with a call that is parked at another worker, who has answered."""
        if self.relay is None:
            return False
        handle = handle_of(as_object(message.get("params")).get("requestState"))
        return await self.relay.pass_on(handle, arrival, body, receive, send)

    async def _post_modern(
        self, arrival: Arrival, principal: Principal, message: Message, receive: Receive, send: Send
    ) -> None:
        if "id" not in message:
            try:
                modern.check_version(str(arrival.header("mcp-protocol-version")))
            except OutfitterError as error:
                await send_json(send, 400, {"jsonrpc": "2.0", "id": None, "error": rpc_error(error)})
                return
            await send_body(send, 202, b"")
            return
        refuse_listening_without_stream(arrival, str(message.get("method")))
        words = Words()
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when_gone, receive, group)
            group.start_soon(self._modern.answer, arrival, principal, message, words)
            await send_stream(send, words, has_events=prefers_events(arrival.header("accept")))
            group.cancel_scope.cancel()

    async def _post_legacy(
        self, arrival: Arrival, principal: Principal, message: Message, body: bytes, receive: Receive, send: Send
    ) -> None:
        if message.get("method") == "initialize" and "id" in message:
            try:
                answer, visit = await self._legacy.initialize(arrival, principal, message)
            except OutfitterError as error:
                await send_json(send, 200, {"jsonrpc": "2.0", "id": message["id"], "error": rpc_error(error)})
                return
            await send_json(send, 200, answer, (SESSION, visit.id))
            return
        with self.desk.witness(principal, message):
            visit = await self._visit(arrival, principal, body, receive, send)
        if visit is None:
            return
        if "method" not in message:
            await send_body(send, 202 if visit.take(message) else 404, b"")
            return
        if "id" not in message:
            visit.hear(message)
            await send_body(send, 202, b"")
            return
        view = await self.desk.open_view(self.desk.seats.name_of(principal), arrival.server)
        wants_events = prefers_events(arrival.header("accept"))
        if wants_events and visit.version >= RESUMABLE_SINCE:
            stream = visit.record()
            self.desk.lot.tasks.start_soon(self._legacy.work, view, visit, message, stream)
            await self._read_replay(visit, stream, None, receive, send)
            return
        words = Words()
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when_gone, receive, group)
            with visit.working_on(message["id"], group.cancel_scope):
                group.start_soon(self._legacy.answer, view, visit, message, words)
                await send_stream(send, words, has_events=wants_events)
            group.cancel_scope.cancel()

    # ── GET ──

    async def _stream(self, arrival: Arrival, principal: Principal, receive: Receive, send: Send) -> None:
        """The standing stream of a visit, or the rest of a stream that its client left."""
        if not arrival.accepts(_EVENTS):
            raise Turned(406, "accept text/event-stream")
        visit = await self._visit(arrival, principal, b"", receive, send)
        if visit is None:
            return
        last = arrival.header("last-event-id")
        found = None if last is None else visit.resume(last)
        if last is not None and found is None:
            raise Turned(400, "there is nothing to go on with after this event")
        if found is None:
            self._listen(visit, arrival)
        stream, after = found or (visit.standing, None)
        if stream is not None:
            await self._read_replay(visit, stream, after, receive, send)

    def _listen(self, visit: Visit, arrival: Arrival) -> None:
        """Begin the standing stream; it hears its servers until nobody reads it any more."""
        stream = visit.listen()

        def wants(note: Message) -> bool:
            return EVERYTHING.fits(note) or visit.wants(note)

        name = self.desk.seats.name_of(visit.principal)
        ear = Ear(lambda: self.desk.open_view(name, arrival.server), visit.visitor(visit), stream.say, wants)
        self.desk.lot.tasks.start_soon(_hear, ear, stream, self.desk.closing)

    async def _read_replay(self, visit: Visit, stream: Replay, after: int | None, receive: Receive, send: Send) -> None:
        """Send a stream from some place on; what its client leaves is given up after a while."""
        turn = stream.begin()
        is_primed = visit.version >= RESUMABLE_SINCE
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_when_gone, receive, group)
                await begin_events(send, (SESSION, visit.id))
                await send_replay(send, stream, turn, after, is_primed=is_primed)
                group.cancel_scope.cancel()
        finally:
            stream.leave(turn)
            self.desk.lot.tasks.start_soon(self._legacy.give_up_later, stream)


async def _hear(ear: Ear, stream: Replay, closing: anyio.Event) -> None:
    """Hear the servers until the stream ends, or until the gateway does."""

    async def close() -> None:
        await closing.wait()
        stream.close()

    with stream.scope:
        try:
            await ear.start()
            async with anyio.create_task_group() as group:
                group.start_soon(ear.follow)
                group.start_soon(close)
                await stream.wait_closed()
                group.cancel_scope.cancel()
        finally:
            ear.stop()
            stream.close()


async def _cancel_when_gone(receive: Receive, group: anyio.abc.TaskGroup) -> None:
    await wait_gone(receive)
    group.cancel_scope.cancel()


@contextmanager
def _told() -> Generator[None]:
    """An endpoint that is not there, or cannot be known now, as an answer of HTTP."""
    try:
        yield
    except NotFound:
        raise Turned(404, "not found") from None
    except Unavailable:
        raise Turned(503, "the registry does not answer; try again", ("retry-after", "1")) from None


def _received(body: bytes, receive: Receive) -> Receive:
    """A request whose body was read already, as if it came anew."""
    pieces = [body]

    async def again() -> MutableMapping[str, Any]:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(), "more_body": False}
        return await receive()

    return again


def _announced(arrival: Arrival) -> Message:
    """What the headers say of a body that is not read."""
    named = modern.decode(arrival.header("mcp-name"))
    return {"method": arrival.header("mcp-method"), "params": {"name": named}}


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Turned(400, "the client went away")
        body += event.get("body", b"")
        if len(body) > MAX_BODY:
            raise Turned(413, f"the body is longer than {MAX_BODY} bytes")
        if not event.get("more_body"):
            return bytes(body)
