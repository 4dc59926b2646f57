"""Events that outlive the process: numbered in the order of their commits, so that nobody who reads on misses one."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import bindparam, delete, func, insert, select

from outfitter.storage.registry.store import Store, Turn
from outfitter.storage.registry.tables import events
from outfitter.storage.registry.values import EventRecord
from outfitter.storage.registry.watching import Watch

_SWEEP = 256
_ADD = insert(events)
_AFTER = select(events).where(events.c.seq > bindparam("last")).order_by(events.c.seq).limit(bindparam("most"))
Told: TypeAlias = tuple[str, str, Mapping[str, Any]]
"""What happened, to what, and what there is to say: kind, subject, data."""


@dataclass(frozen=True, slots=True)
class Events:
    """The newest ``kept`` events, a few hundred more at times."""

    _store: Store
    _watch: Watch
    _kept: int

    async def append(self, kind: str, subject: str, data: Mapping[str, Any]) -> int:
        """Keep an event and answer its number."""
        return await self.append_all(((kind, subject, data),))

    async def append_all(self, told: Sequence[Told]) -> int:
        """Keep events (kind, subject, data), at least one, in one turn; the number of the last one."""
        async with self._store.writing("events") as turn:
            seq = await self._write(turn, turn.value + 1, told)
            turn.moved, turn.value = True, seq - 1  # the turn's end moves it by the last one
        return seq

    async def append_in(self, turn: Turn, told: Sequence[Told]) -> None:
        """Keep events in the turn of another writer: they are kept with what they tell of, or neither is."""
        if told:
            before = await self._store.move(turn, "events", len(told))
            await self._write(turn, before + 1, told)

    async def _write(self, turn: Turn, first: int, told: Sequence[Told]) -> int:
        """The number of the last one."""
        at = self._store.now()
        rows = [
            {"seq": first + place, "at": at, "kind": kind, "subject": subject, "data": json.dumps(data)}
            for place, (kind, subject, data) in enumerate(told)
        ]
        await turn.connection.execute(_ADD, rows)
        seq = first + len(rows) - 1
        if seq // _SWEEP != (first - 1) // _SWEEP:
            await turn.connection.execute(delete(events).where(events.c.seq <= seq - self._kept))
        return seq

    async def after(self, seq: int, limit: int = 100) -> tuple[EventRecord, ...]:
        """The events after a number, oldest first."""
        async with self._store.reading() as connection:
            rows = (await connection.execute(_AFTER, {"last": seq, "most": limit})).all()
        return tuple(EventRecord(row.seq, row.at, row.kind, row.subject, json.loads(row.data)) for row in rows)

    async def span(self) -> tuple[int, int]:
        """The numbers of the oldest and the newest event that are kept; (0, 0) when there is none.

        Who comes back with a number below the oldest but one has missed events.
        """
        async with self._store.reading() as connection:
            oldest, newest = (await connection.execute(select(func.min(events.c.seq), func.max(events.c.seq)))).one()
        return int(oldest or 0), int(newest or 0)

    def follow(self) -> AsyncGenerator[int]:
        """The number of the newest event at once, then whenever there is a newer one, by whichever process."""
        return self._watch.follow("events")
