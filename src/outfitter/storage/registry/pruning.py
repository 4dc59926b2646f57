"""What goes from the registry's database by itself: what runs told that ended long ago, and tokens of ended runs.

In small turns, so that no writer waits long. Which moment is long ago, and how often it is looked, is for whoever asks;
the runs themselves, their results and errors, stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, func, select

from outfitter.storage.registry.store import Store
from outfitter.storage.registry.tables import api_tokens, run_events, runs
from outfitter.storage.registry.tokens import TIME

_KEPT = timedelta(days=1)
"""How long the ended token of a run is remembered: there is one for every attempt."""
_RUNS_AT_ONCE, _ROWS_AT_ONCE = 200, 1000
_TOLD = run_events.c.run_id == runs.c.id
_ENDS = [select(end(run_events.c.seq)).where(_TOLD).scalar_subquery() for end in (func.min, func.max)]
_LONG_ENDED = (
    select(runs.c.seq, runs.c.id, *(end.label(name) for end, name in zip(_ENDS, ("first", "last"), strict=True)))
    .where(runs.c.seq > bindparam("after"), runs.c.ended_at < bindparam("moment"))
    .order_by(runs.c.seq)
    .limit(_RUNS_AT_ONCE)
)
_FORGET = delete(run_events).where(run_events.c.run_id == bindparam("run"), run_events.c.seq < bindparam("end"))
_OLD_TOKENS = (
    select(api_tokens.c.id)
    .where(api_tokens.c.run_id.is_not(None), api_tokens.c.revoked_at < bindparam("old"))
    .limit(_ROWS_AT_ONCE)
)
_FORGET_TOKENS = delete(api_tokens).where(api_tokens.c.id.in_(_OLD_TOKENS))


@dataclass(frozen=True, slots=True)
class Pruning:
    """Removes what is old."""

    _store: Store

    async def forget_events(self, ended_before: str, after: int = 0) -> tuple[int, int | None]:
        """Remove the events of some runs that ended before a moment: how many went, and where to go on.

        ``after`` is where it was gone on from, 0 at first; None when no run is left to look at.
        """
        async with self._store.reading() as connection:
            rows = (await connection.execute(_LONG_ENDED, {"after": after, "moment": ended_before})).all()
        gone = 0
        for row in rows:
            if row.first is not None:
                gone += await self._forget(row.id, row.first, row.last)
        return gone, rows[-1].seq if len(rows) == _RUNS_AT_ONCE else None

    async def _forget(self, run_id: str, first: int, last: int) -> int:
        gone = 0
        for end in range(first + _ROWS_AT_ONCE, last + _ROWS_AT_ONCE + 1, _ROWS_AT_ONCE):
            async with self._store.writing("runs") as turn:
                gone += (await turn.connection.execute(_FORGET, {"run": run_id, "end": end})).rowcount
        return gone

    async def forget_tokens(self) -> int:
        """Remove some tokens of runs that ended more than a day ago; how many went, 0 when none is left."""
        old = (datetime.fromisoformat(self._store.now()) - _KEPT).strftime(TIME)
        async with self._store.writing("tokens") as turn:
            return (await turn.connection.execute(_FORGET_TOKENS, {"old": old})).rowcount
