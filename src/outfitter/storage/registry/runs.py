"""Runs and their sessions: what was asked for, with which plan, and how it went.

A run and its session are added together or not at all. A state moves only from a state that the caller names, so two
who want to move it do not overrule each other. Credentials of a run are never given to this file.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, insert, select, update
from sqlalchemy.exc import IntegrityError

from outfitter.errors import AlreadyExists, Conflict, UnknownRun, UnknownSession
from outfitter.storage.registry.store import Store, Turn
from outfitter.storage.registry.tables import runs, sessions
from outfitter.storage.registry.values import ENDED, RunRecord, RunState, SessionRecord
from outfitter.storage.registry.watching import Watch

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs and sessions of the team."""

    _store: Store
    _watch: Watch

    async def add(self, run: RunRecord, session: SessionRecord | None) -> RunRecord:
        """Keep a run and its new session; without one, the run goes on in the session it names.

        AlreadyExists when the id of either is taken, NotFound when there is no such session, Conflict when a run goes
        on in it already: of two who resume it, one does.
        """
        async with self._store.writing("runs") as turn:
            turn.moved = True
            try:
                await turn.connection.execute(insert(runs).values(self._run_values(run)))
                if session is None:
                    await self._go_on(turn, run)
                else:
                    await turn.connection.execute(insert(sessions).values(self._session_values(session)))
            except IntegrityError:
                raise AlreadyExists("a run or session of this id exists", where=f"runs/{run.id}") from None
        return await self._known(run.id)

    async def get(self, run_id: str) -> RunRecord | None:
        """The run of this id."""
        found = await self._runs(select(runs).where(runs.c.id == run_id))
        return found[0] if found else None

    async def list(
        self,
        *,
        agent: str | None = None,
        states: Collection[RunState] = (),
        session_id: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[RunRecord, ...]:
        """Runs, newest first; ``before`` is the ``seq`` of the last one of the page before."""
        asked = select(runs).order_by(runs.c.seq.desc()).limit(limit)
        if agent is not None:
            asked = asked.where(runs.c.agent_name == agent)
        if states:
            asked = asked.where(runs.c.state.in_(sorted(states)))
        if session_id is not None:
            asked = asked.where(runs.c.session_id == session_id)
        if before is not None:
            asked = asked.where(runs.c.seq < before)
        return await self._runs(asked)

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
    ) -> RunRecord:
        """Move a run, and its session with it; times of start and end are noted by themselves.

        Conflict when the run is in none of ``from_states``, NotFound when there is none.
        """
        values: dict[str, Any] = {"state": to_state}
        ended = {"ended_at": self._store.now()} if to_state in ENDED else {}
        values |= {"started_at": self._store.now()} if to_state == "running" else {}
        values |= {name: json.dumps(said) for name, said in (("result", result), ("error", error)) if said is not None}
        here = (runs.c.id == run_id, runs.c.state.in_(sorted(from_states)))
        async with self._store.writing("runs") as turn:
            moved = await turn.connection.execute(update(runs).where(*here).values(values | ended))
            turn.moved = bool(moved.rowcount)
            if turn.moved:
                mine = update(sessions).where(sessions.c.run_id == run_id)
                await turn.connection.execute(mine.values({"state": to_state} | ended))
        run = await self._known(run_id)
        if not turn.moved:
            hint = f"only a run that is {' or '.join(sorted(from_states))} becomes {to_state}"
            raise Conflict(f"the run is {run.state}", where=f"runs/{run_id}", hint=hint)
        return run

    async def session(self, session_id: str) -> SessionRecord | None:
        """The session of this id, with its plan."""
        found = await self._sessions(select(sessions).where(sessions.c.id == session_id))
        return found[0] if found else None

    async def sessions(
        self, *, agent: str | None = None, state: RunState | None = None, before: int | None = None, limit: int = 100
    ) -> tuple[SessionRecord, ...]:
        """Sessions, newest first; ``before`` as in ``list``."""
        asked = select(sessions).order_by(sessions.c.seq.desc()).limit(limit)
        if agent is not None:
            asked = asked.where(sessions.c.agent == agent)
        if state is not None:
            asked = asked.where(sessions.c.state == state)
        if before is not None:
            asked = asked.where(sessions.c.seq < before)
        return await self._sessions(asked)

    async def children(self, session_id: str) -> tuple[SessionRecord, ...]:
        """The sessions that this one has started, oldest first."""
        return await self._sessions(select(sessions).where(sessions.c.parent_id == session_id).order_by(sessions.c.seq))

    def follow(self) -> AsyncGenerator[int]:
        """A number at once, and a higher one whenever a run was added or moved, by whichever process."""
        return self._watch.follow("runs")

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

    async def _known(self, run_id: str) -> RunRecord:
        run = await self.get(run_id)
        if run is None:
            raise UnknownRun("there is no such run", where=f"runs/{run_id}")
        return run

    async def _runs(self, asked: Select[Any]) -> tuple[RunRecord, ...]:
        async with self._store.reading() as connection:
            return tuple(self._run(row) for row in (await connection.execute(asked)).all())

    async def _sessions(self, asked: Select[Any]) -> tuple[SessionRecord, ...]:
        async with self._store.reading() as connection:
            return tuple(self._session(row) for row in (await connection.execute(asked)).all())

    def _run_values(self, run: RunRecord) -> dict[str, Any]:
        sealer = self._store.sealer("runs", run.id)
        values = {name: getattr(run, name) for name in _PLAIN_RUN}
        values |= {name: _written(getattr(run, name)) for name in ("result", "error")}
        return values | {"prompt": json.dumps(run.prompt), "mcp_headers": sealer.write(run.mcp_headers, run.sealed)}

    def _session_values(self, session: SessionRecord) -> dict[str, Any]:
        sealer = self._store.sealer("sessions", session.id)
        return {name: getattr(session, name) for name in _PLAIN_SESSION} | {
            "plan": sealer.write(session.plan, session.sealed)
        }

    def _run(self, row: Row[Any]) -> RunRecord:
        headers, sealed = self._store.sealer("runs", row.id).read(row.mcp_headers)
        values: dict[str, Any] = {name: getattr(row, name) for name in (*_PLAIN_RUN, "seq")}
        values |= {name: _read(getattr(row, name)) for name in ("prompt", "result", "error")}
        return RunRecord(**values, mcp_headers=headers, sealed=sealed)

    def _session(self, row: Row[Any]) -> SessionRecord:
        plan, sealed = self._store.sealer("sessions", row.id).read(row.plan)
        values: dict[str, Any] = {name: getattr(row, name) for name in (*_PLAIN_SESSION, "seq")}
        return SessionRecord(**values, plan=plan, sealed=sealed)


_PLAIN_RUN = (
    "id", "type", "agent_name", "session_id", "parent_session_id", "state", "created_at", "created_by", "started_at",
    "ended_at",
)  # fmt: skip
_PLAIN_SESSION = ("id", "parent_id", "agent", "run_id", "state", "created_at", "ended_at")


def _written(value: object) -> str | None:
    return None if value is None else json.dumps(value)


def _read(text: str | None) -> Any:  # noqa: ANN401 - any JSON value
    return None if text is None else json.loads(text)
