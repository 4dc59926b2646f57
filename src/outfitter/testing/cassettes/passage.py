"""How does a message get from a client to its server and back? Unchanged, but for what stands in between.

The client speaks on stdin and stdout, the server is a wire. Every request has a task of its own and goes through an
``Answer``: the live server, with a recorder or with faults around it. Ids are the client's own; both eras pass alike.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskGroup

from outfitter.basics import the_one_in
from outfitter.catalog import MCPServer
from outfitter.errors import OutfitterError
from outfitter.testing.cassettes.live import Live, armed, open_wire
from outfitter.testing.exchange import METHOD_NOT_FOUND, PARSE_ERROR, Message, Refusal, part

Answer: TypeAlias = Callable[[Message], Awaitable[Message | None]]
"""The response to a request; None when nothing at all is said."""
STANDING = frozenset({"subscriptions/listen"})
"""Requests that are never answered while their client is there."""
Write: TypeAlias = Callable[[bytes], Awaitable[None]]
_INTERNAL = -32603
_DRAIN_SECONDS = 60.0


class Between(Protocol):
    """What stands between a client and its server."""

    def around(self, answer: Answer) -> Answer:
        """The same answers, watched or spoiled."""
        ...

    def hear(self, message: Message, during: object) -> None:
        """Take notice of what the server says or asks by itself."""
        ...


class Hangup(Exception):
    """The connection to the client ends now, without a word."""


@dataclass(slots=True)
class Passage:
    """One client and one server. Owned by the task that runs ``serve``; it is the inbox of the server's wire."""

    between: Between
    write: Write
    _under_way: dict[object, anyio.CancelScope] = field(default_factory=dict[object, anyio.CancelScope])
    _requests: dict[object, Message] = field(default_factory=dict[object, Message])
    _asked: dict[object, tuple[anyio.Event, list[Message]]] = field(
        default_factory=dict[object, tuple[anyio.Event, list[Message]]]
    )
    _outgoing: list[Message] = field(default_factory=list[Message])
    _news: anyio.Event = field(default_factory=anyio.Event)
    _settled: anyio.Event = field(default_factory=anyio.Event)
    _is_over: bool = False

    async def serve(self, server: MCPServer, lines: AsyncIterator[bytes]) -> None:
        """Pass everything on until the client or the server is gone; UpstreamLost when it was the server."""
        try:
            async with anyio.create_task_group() as writer:
                writer.start_soon(self._speak)
                try:
                    await self._pass_on(server, lines)
                finally:
                    self._is_over = True
                    self._news.set()
        except BaseExceptionGroup as several:
            raise the_one_in(several) from None

    async def _pass_on(self, server: MCPServer, lines: AsyncIterator[bytes]) -> None:
        lost: list[OutfitterError] = []
        ready = armed(server)
        try:
            async with open_wire(ready, self) as wire, anyio.create_task_group() as group:
                live = Live(ready, wire)
                group.start_soon(self._watch, live, lost, group)
                await self._listen(live, lines, group)
        except* Hangup:
            self._outgoing.clear()
            lost.clear()
        if lost:
            raise lost[0]

    async def _listen(self, live: Live, lines: AsyncIterator[bytes], group: TaskGroup) -> None:
        answer = self.between.around(live.ask)
        async for line in lines:
            if line and not line.isspace():
                await self._take(line, live, answer, group)
        with anyio.move_on_after(_DRAIN_SECONDS):
            await self._settle()
        await live.leave()
        group.cancel_scope.cancel()

    async def _settle(self) -> None:
        """Wait until every request has its answer; a subscription goes on for as long as there is somebody."""
        while any(request["method"] not in STANDING for request in self._requests.values()):
            self._settled = anyio.Event()
            await self._settled.wait()

    async def _watch(self, live: Live, lost: list[OutfitterError], group: TaskGroup) -> None:
        """End when the server is gone, once everyone who waited has heard of it."""
        lost.append(await live.wire.wait_lost())
        await self._settle()
        group.cancel_scope.cancel()

    # ── what the client says ──

    async def _take(self, line: bytes, live: Live, answer: Answer, group: TaskGroup) -> None:
        try:
            message = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            self._say(Refusal(PARSE_ERROR, "a line must be one JSON-RPC message").reply(None))
            return
        if "method" not in message:
            self._hear_answer(message)
        elif "id" in message:
            scope = self._under_way[message["id"]] = anyio.CancelScope()
            self._requests[message["id"]] = message
            group.start_soon(self._answer, message, answer, scope)
        else:
            await self._tell(message, live)

    async def _tell(self, message: Message, live: Live) -> None:
        ident = part(message, "params").get("requestId")
        is_cancelling = message.get("method") == "notifications/cancelled"
        if not is_cancelling or live.hears_cancelling(self._requests.get(ident, {})):
            try:
                await live.tell(message)
            except OutfitterError:
                return  # nobody waits for an answer, and the next request says what is wrong
        if is_cancelling and ident in self._under_way:
            self._under_way[ident].cancel()

    async def _answer(self, message: Message, answer: Answer, scope: anyio.CancelScope) -> None:
        ident = message["id"]
        try:
            with scope:
                response = await answer(message)
                if response is not None:
                    self._say({**response, "id": ident})
        except OutfitterError as error:
            # A client that asks which era it is takes this for the other one; everything else is just a failure.
            code = METHOD_NOT_FOUND if message["method"] == "server/discover" else _INTERNAL
            self._say(Refusal(code, str(error)).reply(ident))
        finally:
            self._under_way.pop(ident, None)
            self._requests.pop(ident, None)
            self._settled.set()

    # ── what the server says ──

    def notice(self, message: Message, during: object = None) -> None:
        """Pass a notification on to the client."""
        if str(message.get("method", "")).startswith("notifications/"):
            self.between.hear(message, during)
            self._say(message)

    async def answer(self, message: Message, during: object = None) -> Message:
        """Have the client answer what the server asks."""
        self.between.hear(message, during)
        event, box = self._asked[message.get("id")] = (anyio.Event(), list[Message]())
        self._say(message)
        try:
            await event.wait()
            return box[0]
        finally:
            self._asked.pop(message.get("id"), None)

    def _hear_answer(self, message: Message) -> None:
        waiting = self._asked.get(message.get("id"))
        if waiting is not None:
            waiting[1].append(message)
            waiting[0].set()

    # ── what the client hears ──

    def _say(self, message: Message) -> None:
        self._outgoing.append(message)
        self._news.set()

    async def _speak(self) -> None:
        """Write everything that is said, in its order, until nothing more can come."""
        while True:
            waiting, self._outgoing = self._outgoing, []
            for message in waiting:
                await self.write(msgspec.json.encode(message) + b"\n")
            if self._is_over and not self._outgoing:
                return
            if not self._outgoing:
                await self._news.wait()
                self._news = anyio.Event()
