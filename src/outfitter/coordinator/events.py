"""What happened, for those who listen and for those who come back: kept in the database, numbered without gaps.

Kinds are a noun and what became of it: ``entry.created``, ``run.stopped``. Data holds names, versions and states,
never a header's value or a credential.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any

import anyio

from outfitter.errors import StorageUnavailable
from outfitter.storage import EventRecord, Events

_BATCH = 100
_MOST = 2**31 - 1
_PAUSE = 0.5
_log = logging.getLogger("outfitter.coordinator")


class EventLog:
    """Publishes and follows events."""

    def __init__(self, events: Events) -> None:
        self._events = events

    async def publish(self, kind: str, subject: str, data: Mapping[str, Any]) -> int:
        """Keep an event, such as ``run.created`` of ``runs/<id>``; its number."""
        return await self._events.append(kind, subject, data)

    async def tell(self, kind: str, subject: str, data: Mapping[str, Any]) -> None:
        """Publish what is done already: when that fails, the deed stands and the log says what nobody heard."""
        try:
            await self.publish(kind, subject, data)
        except StorageUnavailable as error:
            _log.warning("event %s of %s was not kept: [%s]", kind, subject, error.code)

    async def tell_all(self, told: Iterable[tuple[str, str, Mapping[str, Any]]]) -> None:
        """``tell`` for many at once: (kind, subject, data)."""
        events = list(told)
        if not events:
            return
        try:
            await self._events.append_all(events)
        except StorageUnavailable as error:
            kind, subject, _ = events[0]
            _log.warning("%d events were not kept, %s of %s first: [%s]", len(events), kind, subject, error.code)

    async def after(self, seq: int, limit: int = 100) -> tuple[EventRecord, ...]:
        """The events after a number, oldest first."""
        return await self._events.after(min(seq, _MOST), limit)

    async def span(self) -> tuple[int, int]:
        """The oldest and the newest number that are kept; (0, 0) when there is none."""
        return await self._events.span()

    async def follow(self, seq: int | None = None) -> AsyncGenerator[EventRecord]:
        """Every event after a number, those to come included; None begins with what comes next.

        It goes on when the database was away, and ends when the database is closed.
        """
        if seq is None:
            seq = (await self._events.span())[1]
        async with aclosing(self._events.follow()) as numbers:
            async for newest in numbers:
                while seq < newest:
                    batch = await self._next(seq)
                    if not batch:
                        break
                    for event in batch:
                        yield event
                    seq = batch[-1].seq

    async def _next(self, seq: int) -> tuple[EventRecord, ...]:
        """The next events; when the database is away, once it is back."""
        while True:
            try:
                return await self._events.after(seq, _BATCH)
            except StorageUnavailable:
                await anyio.sleep(_PAUSE)
