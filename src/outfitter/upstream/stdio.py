"""The wire to a stdio server: one JSON message a line, many questions at once on one pipe.

The process is ``processes``' affair; here lines become messages and answers find who asked. There is no reading task:
the loop hands each piece of stdout to ``hear``, which wakes the asker. Blank lines are skipped. Any other line that is
no JSON-RPC message ends the wire: what follows it could not be trusted, and a skipped answer would leave someone
waiting. Servers write logs to stderr.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import msgspec
from anyio.abc import TaskGroup

from outfitter.errors import Invalid, OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.resolution import ArmedServer
from outfitter.upstream.journal import ProcessJournal
from outfitter.upstream.launch import SpawnRules, prepare_launch
from outfitter.upstream.lines import LineSplitter, LineTooLong
from outfitter.upstream.processes import ChildProcess, StopTimes
from outfitter.upstream.stderr import quote_line
from outfitter.upstream.wire import NO_HEADERS, Inbox, Message

_TOO_MANY = -32000
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class StdioLimits:
    """How much a server may say, and how long it may take to end."""

    line_bytes: int = 16 * 1024 * 1024
    stderr_bytes: int = 64 * 1024
    requests: int = 64
    """Requests of the server that are being answered at the same time; more are declined."""
    unread_bytes: int = 1024 * 1024
    """Answers that the server does not read; with more the wire ends."""
    stop: StopTimes = field(default_factory=StopTimes)


@dataclass(frozen=True, slots=True)
class _Loss:
    """Why the wire is gone. Each asker gets an error of its own."""

    message: str
    where: str
    hint: str = ""
    is_violation: bool = False

    def error(self, *, may_have_run: bool) -> OutfitterError:
        if self.is_violation:
            return ProtocolViolation(self.message, where=self.where, hint=self.hint)
        return UpstreamLost(self.message, may_have_run=may_have_run, where=self.where, hint=self.hint)


@asynccontextmanager
async def open_stdio_wire(
    server: ArmedServer,
    inbox: Inbox,
    *,
    journal: ProcessJournal | None = None,
    rules: SpawnRules | None = None,
    limits: StdioLimits | None = None,
) -> AsyncGenerator[StdioWire]:
    """Start the server's program and talk to it; the program is gone when the block is left."""
    limits = limits or StdioLimits()
    launch = prepare_launch(server, rules)
    child = ChildProcess(launch, times=limits.stop, stderr_bytes=limits.stderr_bytes)
    async with _open_group() as group:
        wire = StdioWire(child, inbox, group, limits)
        async with child.run(wire, journal):
            try:
                yield wire
            finally:
                wire.close()


@asynccontextmanager
async def _open_group() -> AsyncGenerator[TaskGroup]:
    """A task group that ends with its block and lets the block's error out as it is, not in an exception group."""
    failure: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            yield group
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        first, *others = failures.exceptions
        if others:
            raise
        failure = first
    if failure is not None:
        raise failure


class StdioWire:
    """One open connection to a process. See ``Wire`` for what it promises."""

    def __init__(self, child: ChildProcess, inbox: Inbox, group: TaskGroup, limits: StdioLimits) -> None:
        self._child = child
        self._inbox = inbox
        self._group = group
        self._limits = limits
        self._lines = LineSplitter(limits.line_bytes)
        self._waiting: dict[int | str, asyncio.Future[Message | None]] = {}
        self._answering = 0
        self._has_answered = False
        self._loss: _Loss | None = None
        self._gone = asyncio.Event()
        self._create_future = asyncio.get_running_loop().create_future

    # ── what a link uses ─────────────────────────────────────────────────────────────────────────────────────────────

    async def ask(
        self, message: Message, headers: Mapping[str, str] = NO_HEADERS,  # noqa: ARG002 - a pipe has no place for them
        sent: Awaitable[Message | None] | None = None,
    ) -> Message:  # fmt: skip
        """Send a request and wait for its answer."""
        ident, was_sent = message["id"], True
        if sent is None:
            data = _line_of(message)
            await self._wait_for_room()
            if ident in self._waiting:
                raise Invalid(f"a request with the id {ident!r} is already waiting", where=self._child.launch.where)
            sent = self._waiting[ident] = self._create_future()
            was_sent = self._child.write(data)
        try:
            found = await sent
        finally:
            self._waiting.pop(ident, None)
        if found is None:
            raise self._why_lost(may_have_run=was_sent)
        return found

    def begin(self, ident: int, line: bytes) -> asyncio.Future[Message | None] | None:
        """Write a request as it is; its answer, None for a lost one, comes later. None when nothing was written."""
        if self._loss is not None or not self._child.has_room or ident in self._waiting:
            return None
        answer = self._waiting[ident] = self._create_future()
        if not self._child.write(line):
            del self._waiting[ident]
            return None
        answer.add_done_callback(lambda _: self._waiting.pop(ident, None))
        return answer

    async def tell(self, message: Message, headers: Mapping[str, str] = NO_HEADERS) -> None:  # noqa: ARG002
        """Send a notification."""
        data = _line_of(message)
        await self._wait_for_room()
        self._child.write(data)

    @property
    def lost(self) -> OutfitterError | None:
        """Why the process is gone; None while it lives."""
        return None if self._loss is None else self._why_lost(may_have_run=False)

    async def wait_lost(self) -> OutfitterError:
        """Wait until the process is gone or said something that is not MCP, and say which."""
        await self._gone.wait()
        return self._why_lost(may_have_run=True)

    def close(self) -> None:
        """Fail whoever still waits: the owner closes the wire."""
        self._lose(_Loss("the connection was closed", self._child.launch.where))

    async def _wait_for_room(self) -> None:
        while self._loss is None and not self._child.has_room:
            await self._child.wait_for_room()
        if self._loss is not None:
            raise self._why_lost(may_have_run=False)

    def _why_lost(self, *, may_have_run: bool) -> OutfitterError:
        return cast("_Loss", self._loss).error(may_have_run=may_have_run)

    # ── what the process calls ───────────────────────────────────────────────────────────────────────────────────────

    def hear(self, data: bytes) -> None:
        """Take a piece of stdout and deliver each message that is complete with it."""
        if self._loss is not None:
            return
        try:
            lines = self._lines.feed(data)
        except LineTooLong:
            self._violate(f"the server wrote a line of more than {self._limits.line_bytes} bytes", self._lines.begun)
            return
        for line in lines:
            if line and not line.isspace():
                self._take(line)
            if self._loss is not None:
                return

    def end(self, how: str) -> None:
        """Tell everyone that the process is gone."""
        begun = self._lines.begun.strip()
        early = "" if self._has_answered else " before it answered anything"
        cut = f"; the last line is cut off: {quote_line(begun, self._child.launch.hidden)}" if begun else ""
        words = self._child.last_words()
        said = f"; stderr: {words}" if words else "; it wrote nothing to stderr"
        self._lose(_Loss(f"the server's process {how}{early}{cut}{said}", self._child.launch.where))

    def _take(self, line: bytes) -> None:
        try:
            message = _decode(line)
        except (ValueError, RecursionError):
            self._violate("the server wrote a line to stdout that is not JSON", line)
            return
        if isinstance(message, dict):
            self._deliver(cast("Message", message), line)
        else:
            self._violate("the server wrote JSON that is not a message", line)

    def _deliver(self, message: Message, line: bytes) -> None:
        ident: Any = message.get("id")
        if "method" in message:
            if ident is None:
                self._inbox.notice(message)
            else:
                self._start_answer(message)
        elif "result" in message or "error" in message:
            # An answer that nobody waits for belongs to a request that was given up.
            waiter = self._waiting.get(ident) if isinstance(ident, (int, str)) else None
            if waiter is not None and not waiter.done():
                waiter.set_result(message)
            self._has_answered = True
        else:
            self._violate("the server wrote JSON that is not a message", line)

    # ── requests of the server ───────────────────────────────────────────────────────────────────────────────────────

    def _start_answer(self, message: Message) -> None:
        if self._answering < self._limits.requests:
            self._answering += 1
            self._group.start_soon(self._answer, message)
        elif self._child.unread_bytes() < self._limits.unread_bytes:
            error = {"code": _TOO_MANY, "message": "too many requests at once"}
            self._child.write(_line_of({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        else:
            self._violate("the server asks more and more and reads no answer", b"")

    async def _answer(self, message: Message) -> None:
        try:
            data = _line_of(await self._inbox.answer(message))
            while self._loss is None and not self._child.has_room:
                await self._child.wait_for_room()
            self._child.write(data)
        finally:
            self._answering -= 1

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _violate(self, what: str, line: bytes) -> None:
        """End the wire because of what the server said, and its process with it."""
        quoted = f": {quote_line(line, self._child.launch.hidden)}" if line else ""
        hint = "stdout is for messages only; logs belong on stderr"
        self._lose(_Loss(f"{what}{quoted}", self._child.launch.where, hint, is_violation=True))
        self._child.kill()

    def _lose(self, loss: _Loss) -> None:
        if self._loss is not None:
            return
        self._loss = loss
        self._lines.forget()
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_result(None)
        self._gone.set()


def _line_of(message: Message) -> bytes:
    try:
        return _encode(message) + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"the message cannot be written as JSON: {type(error).__name__}") from None
