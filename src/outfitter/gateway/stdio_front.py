"""The pipe face: one client that started this process speaks on stdin and stdout, in either era.

One line is one message, and nothing else is ever written. There is no token: whoever starts the process is the agent
that it names. What each era does is ``front_modern`` and ``front_legacy``; the desk is the same as over HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import msgspec
from anyio.abc import TaskGroup

from outfitter.errors import OutfitterError
from outfitter.gateway import modern
from outfitter.gateway.desk import Desk
from outfitter.gateway.faults import INVALID_REQUEST, rpc_error
from outfitter.gateway.front_legacy import LegacyFront
from outfitter.gateway.front_modern import ModernFront
from outfitter.gateway.gate import Arrival
from outfitter.gateway.listening import EVERYTHING, Ear
from outfitter.gateway.streams import decode, meant
from outfitter.gateway.views import as_object
from outfitter.gateway.visitors import Principal
from outfitter.gateway.visits import Visit
from outfitter.gateway.words import Final, Words
from outfitter.upstream import Message

Write = Callable[[bytes], Awaitable[None]]
_DRAIN_SECONDS = 1.5
_BEFORE_THE_HANDSHAKE = frozenset({"initialize", "ping"})


@dataclass(slots=True)
class StdioFront:
    """One client. Owned by the task that runs ``serve``; every request has a task of its own."""

    desk: Desk
    agent: str
    server: str | None = None
    _words: Words = field(default_factory=Words)
    _visit: Visit | None = None
    _under_way: dict[object, anyio.CancelScope] = field(default_factory=dict[object, anyio.CancelScope])
    _quiet: anyio.Event = field(default_factory=anyio.Event)

    async def serve(self, lines: AsyncIterator[bytes], write: Write) -> None:
        """Answer every line until there are no more; what is under way then may end, for a moment."""
        async with anyio.create_task_group() as writer:
            writer.start_soon(self._write, write)
            async with anyio.create_task_group() as group:
                async for line in lines:
                    if line and not line.isspace():
                        self._take(line, group)
                await self._drain()
                group.cancel_scope.cancel()
            self._words.close()
        if self._visit is not None:
            self.desk.visits.end(self._visit.id)

    async def _write(self, write: Write) -> None:
        while (word := await self._words.hear()) is not None:
            await write(msgspec.json.encode(word.message if isinstance(word, Final) else word) + b"\n")

    async def _drain(self) -> None:
        self.desk.close()
        with anyio.move_on_after(_DRAIN_SECONDS):
            while self._under_way:
                self._quiet = anyio.Event()
                await self._quiet.wait()

    @property
    def _arrival(self) -> Arrival:
        return Arrival("POST", (), self.agent, self.server)

    @property
    def _principal(self) -> Principal:
        return Principal(self.agent, "stdio", self.server)

    def _take(self, line: bytes, group: TaskGroup) -> None:
        """One message: a request gets a task, anything else is done at once."""
        message = decode(line)
        if isinstance(message, Final):
            self.desk.note_refused(self._principal, meant(line), message.message["error"]["code"])
            self._words.say(message)
        elif "method" not in message:
            if self._visit is not None:
                self._visit.take(message)
        elif "id" not in message:
            self._hear(message)
        else:
            scope = self._under_way[message["id"]] = anyio.CancelScope()
            group.start_soon(self._answer, message, scope, group)

    def _hear(self, notification: Message) -> None:
        if notification.get("method") == "notifications/cancelled":
            scope = self._under_way.get(as_object(notification.get("params")).get("requestId"))
            if scope is not None:
                scope.cancel()

    async def _answer(self, message: Message, scope: anyio.CancelScope, group: TaskGroup) -> None:
        try:
            with scope:
                await self._dispatch(message, group)
        finally:
            if self._under_way.get(message["id"]) is scope:
                del self._under_way[message["id"]]
            if not self._under_way:
                self._quiet.set()

    async def _dispatch(self, message: Message, group: TaskGroup) -> None:
        method = message.get("method")
        if modern.is_modern(message) or method == "server/discover":
            front = ModernFront(self.desk, has_headers=False)
            await front.answer(self._arrival, self._principal, message, self._words)
        elif method == "initialize":
            await self._initialize(message, group)
        elif self._visit is not None:
            view = await self.desk.open_view(self.agent, self.server)
            await LegacyFront(self.desk).answer(view, self._visit, message, self._words)
        elif method in _BEFORE_THE_HANDSHAKE:
            self._words.say(Final({"jsonrpc": "2.0", "id": message["id"], "result": {}}))
        else:
            self.desk.note_refused(self._principal, message, INVALID_REQUEST)
            error = {"code": INVALID_REQUEST, "message": "send initialize first"}
            self._words.say(Final({"jsonrpc": "2.0", "id": message["id"], "error": error}))

    async def _initialize(self, message: Message, group: TaskGroup) -> None:
        """The handshake; from then on the client hears of changes."""
        try:
            answer, visit = await LegacyFront(self.desk).initialize(self._arrival, self._principal, message)
        except OutfitterError as error:
            answer: Message = {"jsonrpc": "2.0", "id": message["id"], "error": rpc_error(error)}
            self._words.say(Final(answer))
            return
        if self._visit is not None:
            self.desk.visits.end(self._visit.id)
        self._visit = visit
        self._words.say(Final(answer))
        group.start_soon(self._listen, visit)

    async def _listen(self, visit: Visit) -> None:
        def wants(note: Message) -> bool:
            return self._visit is visit and (EVERYTHING.fits(note) or visit.wants(note))

        ear = Ear(lambda: self.desk.open_view(self.agent, self.server), visit.visitor(visit), self._words.say, wants)
        try:
            await ear.start()
            await ear.follow()
        finally:
            ear.stop()
