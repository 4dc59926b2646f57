"""Those who execute runs: when each was last heard of, what it said of itself, and who speaks for it.

Whoever speaks for a runner first is the only one who does, as long as it is heard of; an admin may always.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from outfitter.errors import Conflict
from outfitter.storage.registry.store import Store, Turn
from outfitter.storage.registry.tables import runners, runs
from outfitter.storage.registry.tokens import TIME, subject_of
from outfitter.storage.registry.values import ENDED, RunnerRecord

_REMEMBERED = timedelta(days=7)
"""How long a runner is listed that is not heard of any more: some have another name at every start."""
_AT_ONCE = 500
_TOUCH = update(runners).where(runners.c.id == bindparam("runner"))


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who speaks for a runner, by the name that the access layer gives; without one, nobody in particular."""

    subject: str = ""
    is_admin: bool = False

    @classmethod
    def by_token(cls, token_id: str, *, is_admin: bool) -> Speaker:
        """Whoever holds this token."""
        return cls(subject_of(token_id), is_admin)

    def is_refused_by(self, subject: str | None) -> bool:
        """Whether somebody else speaks for a runner for whom this one speaks."""
        return subject is not None and subject != self.subject and not self.is_admin


ANYBODY = Speaker()


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a runner in a turn: when it was heard of, and who speaks for it."""

    last_seen: str
    subject: str | None

    def is_dead(self, before: str) -> bool:
        """Whether it was not heard of since then."""
        return self.last_seen < before


@dataclass(frozen=True, slots=True)
class Runners:
    """The runners that were ever heard of."""

    _store: Store

    async def beat(self, runner: RunnerRecord, speaker: Speaker = ANYBODY, dead_before: str = "") -> tuple[str, ...]:
        """Note that a runner is alive and what it says; the ids of the runs that it is to stop.

        These are its own that are stopping, and those it believes to execute that are not its own: they have ended, are
        unknown, or belong to a runner that is alive. Conflict when somebody else speaks for it.
        """
        said = {"capacity": runner.capacity, "running": json.dumps(list(runner.running))}
        said |= {"executors": json.dumps(list(runner.executors))}
        async with self._store.writing("runs") as turn:
            asked = select(runners.c.last_seen, runners.c.subject).where(runners.c.id == runner.id)
            row = (await turn.connection.execute(asked)).one_or_none()
            seen = None if row is None else Seen(row.last_seen, row.subject)
            await self.touch_in(turn, runner.id, seen, speaker, dead_before, said)
            mine = select(runs.c.id).where(runs.c.owner == runner.id, runs.c.state == "stopping")
            stopping = tuple((await turn.connection.execute(mine.order_by(runs.c.seq))).scalars())
            return stopping + await _not_its_own(turn, runner, set(stopping), dead_before)

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

    async def touch_in(
        self,
        turn: Turn,
        runner: str,
        seen: Seen | None,
        speaker: Speaker,
        dead_before: str,
        said: dict[str, Any] | None = None,
    ) -> None:
        """Note in a turn that a runner was heard of just now; Conflict when somebody else speaks for it.

        ``seen`` is what is known of it in this turn. A dead one's name is free for anybody.
        """
        now = self._store.now()
        news: dict[str, Any] = {"last_seen": now} | (said or {})
        if seen is not None:
            is_other = speaker.is_refused_by(seen.subject)
            if is_other and not seen.is_dead(dead_before):
                hint = (
                    "another token speaks for it; it is free a while after it was last heard of, or take another --id"
                )
                raise Conflict(f"runner '{runner}' is somebody else's", where=f"runners/{runner}", hint=hint)
            if is_other or seen.subject is None:
                news["subject"] = speaker.subject or None
            await turn.connection.execute(_TOUCH, {"runner": runner} | news)
            return
        old = (datetime.fromisoformat(now) - _REMEMBERED).strftime(TIME)
        await turn.connection.execute(delete(runners).where(runners.c.last_seen < old))
        first: dict[str, Any] = {"id": runner, "first_seen": now, "subject": speaker.subject or None}
        first |= {"capacity": 1, "running": "[]", "executors": "[]"} | news
        await turn.connection.execute(insert(runners).values(first))


async def _not_its_own(turn: Turn, runner: RunnerRecord, named: Collection[str], dead_before: str) -> tuple[str, ...]:
    """Of the runs that a runner believes to execute, those that it does not; one that it may take over is none."""
    ids = [run_id for run_id in dict.fromkeys(runner.running) if run_id not in named]
    fine: set[str] = set()
    for start in range(0, len(ids), _AT_ONCE):
        here = runs.c.id.in_(ids[start : start + _AT_ONCE])
        asked = select(runs.c.id, runs.c.owner, runs.c.state, runners.c.last_seen)
        joined = asked.select_from(runs.outerjoin(runners, runners.c.id == runs.c.owner)).where(here)
        for row in (await turn.connection.execute(joined)).all():
            is_free = row.owner in {None, runner.id} or row.last_seen is None or row.last_seen < dead_before
            if row.state not in ENDED and is_free:
                fine.add(row.id)
    return tuple(run_id for run_id in ids if run_id not in fine)
