"""Those who execute runs: when each was last heard of, and what it said of itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select, update

from outfitter.storage.registry.store import Store, Turn
from outfitter.storage.registry.tables import runners, runs
from outfitter.storage.registry.tokens import TIME
from outfitter.storage.registry.values import RunnerRecord

_REMEMBERED = timedelta(days=7)
"""How long a runner is listed that is not heard of any more: some have another name at every start."""


@dataclass(frozen=True, slots=True)
class Runners:
    """The runners that were ever heard of."""

    _store: Store

    async def beat(self, runner: RunnerRecord) -> tuple[str, ...]:
        """Note that a runner is alive and what it says; the ids of its own runs that are to stop."""
        said = {"capacity": runner.capacity, "running": json.dumps(list(runner.running))}
        said |= {"executors": json.dumps(list(runner.executors))}
        async with self._store.writing("runs") as turn:
            await self.touch_in(turn, runner.id, said)
            mine = select(runs.c.id).where(runs.c.owner == runner.id, runs.c.state == "stopping")
            return tuple((await turn.connection.execute(mine.order_by(runs.c.seq))).scalars())

    async def all(self) -> tuple[RunnerRecord, ...]:
        """Every runner, by id."""
        async with self._store.reading() as connection:
            rows = (await connection.execute(select(runners).order_by(runners.c.id))).all()
        return tuple(
            RunnerRecord(
                id=row.id,
                capacity=row.capacity,
                running=tuple(json.loads(row.running)),
                executors=tuple(json.loads(row.executors)),
                first_seen=row.first_seen,
                last_seen=row.last_seen,
            )
            for row in rows
        )

    async def touch_in(self, turn: Turn, runner: str, said: dict[str, Any] | None = None) -> None:
        """Note in a turn that a runner was heard of just now."""
        now = self._store.now()
        mine = update(runners).where(runners.c.id == runner)
        if (await turn.connection.execute(mine.values({"last_seen": now} | (said or {})))).rowcount:
            return
        old = (datetime.fromisoformat(now) - _REMEMBERED).strftime(TIME)
        await turn.connection.execute(delete(runners).where(runners.c.last_seen < old))
        first: dict[str, Any] = {"id": runner, "first_seen": now, "last_seen": now}
        first |= {"capacity": 1, "running": "[]", "executors": "[]"} | (said or {})
        await turn.connection.execute(insert(runners).values(first))
