"""Runs and their sessions: what was asked for, with which plan, and how it went.

A run and its session are added together or not at all. A state moves only from a state that the caller names, so two
who want to move it do not overrule each other. What is told of it is kept in the same transaction. Credentials of a run
are never given to this file. Executing runs is ``executing``'s affair.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from outfitter.errors import AlreadyExists, Conflict, UnknownSession
from outfitter.storage.registry.events import Events, Told
from outfitter.storage.registry.run_rows import RunRows, written
from outfitter.storage.registry.store import Store, Turn
from outfitter.storage.registry.tables import runs, sessions
from outfitter.storage.registry.tokens import ApiTokens
from outfitter.storage.registry.values import ENDED, RunRecord, RunState, SessionRecord
from outfitter.storage.registry.watching import Watch

_AT_ONCE = 500
TellRun: TypeAlias = Callable[[RunRecord], Told]
"""What to tell of a run that was added or moved."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs and sessions of the team."""

    _store: Store
    _watch: Watch
    _tokens: ApiTokens
    _events: Events

    async def add(self, run: RunRecord, session: SessionRecord | None, tell: TellRun | None = None) -> RunRecord:
        """Keep a run and its new session; without one, the run goes on in the session it names.

        AlreadyExists when the id of either is taken, NotFound when there is no such session, Conflict when a run goes
        on in it already: of two who resume it, one does.
        """
        async with self._store.writing("runs") as turn:
            turn.moved = True
            try:
                await turn.connection.execute(insert(runs).values(self._rows.run_values(run)))
                if session is None:
                    await self._go_on(turn, run)
                else:
                    await turn.connection.execute(insert(sessions).values(self._rows.session_values(session)))
            except IntegrityError:
                raise AlreadyExists("a run or session of this id exists", where=f"runs/{run.id}") from None
            added = await self._rows.known(turn.connection, run.id)
            await self._events.append_in(turn, [] if tell is None else [tell(added)])
        return added

    async def get(self, run_id: str) -> RunRecord | None:
        """The run of this id."""
        found = await self._rows.runs(select(runs).where(runs.c.id == run_id))
        return found[0] if found else None

    async def list(
        self,
        *,
        agent: str | None = None,
        states: Collection[RunState] = (),
        session_id: str | None = None,
        last: int | None = None,
        limit: int = 100,
        oldest_first: bool = False,
    ) -> tuple[RunRecord, ...]:
        """Runs, newest first or oldest first; ``last`` is the ``seq`` of the last one of the page before."""
        asked = select(runs).order_by(runs.c.seq if oldest_first else runs.c.seq.desc()).limit(limit)
        if agent is not None:
            asked = asked.where(runs.c.agent_name == agent)
        if states:
            asked = asked.where(runs.c.state.in_(sorted(states)))
        if session_id is not None:
            asked = asked.where(runs.c.session_id == session_id)
        if last is not None:
            asked = asked.where(runs.c.seq > last if oldest_first else runs.c.seq < last)
        return await self._rows.runs(asked)

    async def ended(self, run_ids: Collection[str]) -> frozenset[str]:
        """Those of these runs that have ended; one that is not kept has not."""
        found: set[str] = set()
        ids = sorted(run_ids)
        for start in range(0, len(ids), _AT_ONCE):
            here = (runs.c.id.in_(ids[start : start + _AT_ONCE]), runs.c.state.in_(sorted(ENDED)))
            async with self._store.reading() as connection:
                found.update((await connection.execute(select(runs.c.id).where(*here))).scalars())
        return frozenset(found)

    async def set_state(
        self,
        run_id: str,
        from_states: Collection[RunState],
        to_state: RunState,
        *,
        result: Any = None,  # noqa: ANN401 - any JSON value
        error: Any = None,  # noqa: ANN401 - any JSON value
        tell: TellRun | None = None,
    ) -> RunRecord:
        """Move a run, and its session with it; times of start and end are noted, and its end is that of its tokens.

        Conflict when the run is in none of ``from_states``, NotFound when there is none.
        """
        values: dict[str, Any] = {"started_at": self._store.now()} if to_state == "running" else {}
        values |= {name: written(said) for name, said in (("result", result), ("error", error)) if said is not None}
        async with self._store.writing("runs") as turn:
            run = await self._rows.known(turn.connection, run_id)
            if run.state not in from_states:
                hint = f"only a run that is {' or '.join(sorted(from_states))} becomes {to_state}"
                raise Conflict(f"the run is {run.state}", where=f"runs/{run_id}", hint=hint)
            run = await self._rows.move(turn, run_id, to_state, values)
            if to_state in ENDED:
                await self._tokens.end_in(turn, run_id)
            await self._events.append_in(turn, [] if tell is None else [tell(run)])
        return run

    async def session(self, session_id: str) -> SessionRecord | None:
        """The session of this id, with its plan."""
        found = await self._rows.sessions(select(sessions).where(sessions.c.id == session_id))
        return found[0] if found else None

    async def sessions(
        self, *, agent: str | None = None, state: RunState | None = None, before: int | None = None, limit: int = 100
    ) -> tuple[SessionRecord, ...]:
        """Sessions, newest first; ``before`` is the ``seq`` of the last one of the page before."""
        asked = select(sessions).order_by(sessions.c.seq.desc()).limit(limit)
        if agent is not None:
            asked = asked.where(sessions.c.agent == agent)
        if state is not None:
            asked = asked.where(sessions.c.state == state)
        if before is not None:
            asked = asked.where(sessions.c.seq < before)
        return await self._rows.sessions(asked)

    async def children(self, session_id: str) -> tuple[SessionRecord, ...]:
        """The sessions that this one has started, oldest first."""
        asked = select(sessions).where(sessions.c.parent_id == session_id).order_by(sessions.c.seq)
        return await self._rows.sessions(asked)

    def follow(self) -> AsyncGenerator[int]:
        """A number at once, and a higher one whenever a run was added or moved, by whichever process."""
        return self._watch.follow("runs")

    @property
    def _rows(self) -> RunRows:
        return RunRows(self._store)

    async def _go_on(self, turn: Turn, run: RunRecord) -> None:
        values = {"run_id": run.id, "state": run.state, "ended_at": None}
        here, where = sessions.c.id == run.session_id, f"sessions/{run.session_id}"
        at_rest = sessions.c.state.in_(sorted(ENDED))
        if (await turn.connection.execute(update(sessions).where(here, at_rest).values(values))).rowcount:
            return
        state = (await turn.connection.execute(select(sessions.c.state).where(here))).scalar_one_or_none()
        if state is None:
            raise UnknownSession("there is no such session", where=where)
        raise Conflict(f"the session is {state}", where=where, hint="stop its run first")
