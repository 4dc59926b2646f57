"""What happens, as it happens: server-sent events with replay.

Each event has its number, so that a client that comes back says where it stopped (``Last-Event-ID``). Events are taken
from the log one at a time, as fast as the client reads: a slow one holds nobody up and nothing piles up for it. A
stream ends when its token does, when the client goes, and when the service closes.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import msgspec

from outfitter.coordinator.api.doorway import EVERY_ANSWER
from outfitter.coordinator.api.models import EventShown, EventsQuery
from outfitter.coordinator.api.problems import Turned
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.errors import StorageUnavailable

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from starlette.types import Receive, Scope, Send

    from outfitter.coordinator.access.identity import Identity
    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office

EVENTS = "text/event-stream"
_NUMBER = re.compile(rb"[0-9]{1,15}")
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
    *EVERY_ANSWER,
)
_BEGIN = b"retry: 1000\n\n"
_BEAT = b": still here\n\n"
_AHEAD = 16


async def _follow(office: Office, asked: Asked[EventsQuery]) -> Stream:
    last = asked.headers.get(b"last-event-id", b"").strip()
    if last and _NUMBER.fullmatch(last) is None:
        raise Turned(400, "bad_event_id", "Last-Event-ID is the number of an event")
    if office.listeners.taken >= office.listeners.most:
        raise Turned(503, "too_many_listeners", "too many listen already", headers=[("retry-after", "5")])
    asked_for = None if asked.query.after is msgspec.UNSET else asked.query.after
    after = int(last) if last else asked_for
    return Stream(office, asked.who, after, await _missed(office, after), is_bare=asked.method == "HEAD")


async def _missed(office: Office, after: int | None) -> bytes:
    """What to say first to a client that stopped before the oldest event that is kept, or comes from elsewhere."""
    if after is None:
        return b""
    oldest, newest = await office.coordinator.events.span()
    if (oldest and after < oldest - 1) or after > newest:
        return b'event: gap\ndata: {"oldest":%d,"newest":%d}\n\n' % (oldest, newest)
    return b""


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that goes on."""

    office: Office
    who: Identity | None
    after: int | None
    first: bytes
    is_bare: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's shape
        """Send until somebody ends it."""
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        if not self.is_bare:
            self.office.listeners.taken += 1
            try:
                await self._run(receive, send)
            finally:
                self.office.listeners.taken -= 1
        await send({"type": "http.response.body", "body": b""})

    async def _run(self, receive: Receive, send: Send) -> None:
        write, read = anyio.create_memory_object_stream[bytes](_AHEAD)
        async with anyio.create_task_group() as group, read:
            group.start_soon(self._pump, write)
            group.start_soon(_end_when_gone, receive, group)
            group.start_soon(_end_when_closing, self.office, group)
            await send({"type": "http.response.body", "body": _BEGIN + self.first, "more_body": True})
            while (piece := await self._next(read)) and self._holds():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            group.cancel_scope.cancel()

    async def _next(self, read: MemoryObjectReceiveStream[bytes]) -> bytes:
        """The next event, or a sign of life; nothing when there will be no more."""
        with anyio.move_on_after(self.office.beat_seconds):
            try:
                return await read.receive()
            except anyio.EndOfStream:
                return b""
        return _BEAT

    def _holds(self) -> bool:
        return self.who is None or self.office.access.holds(self.who)

    async def _pump(self, write: MemoryObjectSendStream[bytes]) -> None:
        """Events from the log; where the log cannot be read, the stream ends and the client comes back."""
        after = self.after
        async with write:
            try:
                async with aclosing(self.office.coordinator.events.follow(after)) as events:
                    async for event in events:
                        shown = EventShown(event.seq, event.at, event.kind, event.subject, dict(event.data))
                        await write.send(_text(shown))
            except StorageUnavailable:
                return


def _text(event: EventShown) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.seq, event.kind.encode(), msgspec.json.encode(event))


async def _end_when_gone(receive: Receive, group: anyio.abc.TaskGroup) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    group.cancel_scope.cancel()


async def _end_when_closing(office: Office, group: anyio.abc.TaskGroup) -> None:
    await office.closing.wait()
    group.cancel_scope.cancel()


ROUTES = (
    Route("GET", "/events", "What happens, as server-sent events; `Last-Event-ID` replays", _follow,
          Answer(model=EventShown, media=EVENTS), "events.read", EventsQuery),
)  # fmt: skip
