"""Runs and sessions as rows: what is written in which column, and back, with sealed literals opened.

``runs`` and ``executing`` read and write with it; neither rules nor states are here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from outfitter.errors import UnknownRun
from outfitter.storage.registry.sealing import Sealer
from outfitter.storage.registry.store import Store, Turn
from outfitter.storage.registry.tables import runs, sessions
from outfitter.storage.registry.values import ENDED, RunRecord, RunState, SessionRecord

_PLAIN_RUN = (
    "id", "type", "agent_name", "session_id", "parent_session_id", "state", "created_at", "created_by", "started_at",
    "ended_at", "owner", "attempt", "holder",
)  # fmt: skip
_KNOWN = select(runs).where(runs.c.id == bindparam("run"))
_MOVE = update(runs).where(runs.c.id == bindparam("run")).returning(runs)
_MOVE_SESSION = update(sessions).where(sessions.c.run_id == bindparam("run"))
_PLAIN_SESSION = ("id", "parent_id", "agent", "run_id", "state", "created_at", "ended_at")


@dataclass(frozen=True, slots=True)
class RunRows:
    """Reads and writes the rows of runs and sessions."""

    store: Store

    async def runs(self, asked: Select[Any]) -> tuple[RunRecord, ...]:
        """The runs that a query finds."""
        async with self.store.reading() as connection:
            return tuple(self.run(row) for row in (await connection.execute(asked)).all())

    async def sessions(self, asked: Select[Any]) -> tuple[SessionRecord, ...]:
        """The sessions that a query finds."""
        async with self.store.reading() as connection:
            return tuple(self.session(row) for row in (await connection.execute(asked)).all())

    async def known(self, connection: AsyncConnection, run_id: str) -> RunRecord:
        """The run of this id, as a transaction sees it; UnknownRun when there is none."""
        row = (await connection.execute(_KNOWN, {"run": run_id})).one_or_none()
        if row is None:
            raise UnknownRun("there is no such run", where=f"runs/{run_id}")
        return self.run(row)

    async def move(self, turn: Turn, run_id: str, state: RunState, values: dict[str, Any]) -> RunRecord:
        """The run and its session in another state; when it ends, the time is noted."""
        ended = {"ended_at": self.store.now()} if state in ENDED else {}
        moved = {"run": run_id, "state": state} | ended
        row = (await turn.connection.execute(_MOVE, values | moved)).one()
        await turn.connection.execute(_MOVE_SESSION, moved)
        turn.moved = True
        return self.run(row)

    def run_values(self, run: RunRecord) -> dict[str, Any]:
        """A run as a row."""
        values = {name: getattr(run, name) for name in _PLAIN_RUN}
        values |= {name: written(getattr(run, name)) for name in ("result", "error")}
        values |= {"given": json.dumps(dict(run.given)) if run.given else None, "prompt": json.dumps(run.prompt)}
        return values | {"mcp_headers": self._sealer("runs", run.id).write(run.mcp_headers, run.sealed)}

    def session_values(self, session: SessionRecord) -> dict[str, Any]:
        """A session as a row."""
        plan = self._sealer("sessions", session.id).write(session.plan, session.sealed)
        return {name: getattr(session, name) for name in _PLAIN_SESSION} | {"plan": plan}

    def run(self, row: Row[Any]) -> RunRecord:
        """A row as a run."""
        headers, sealed = self._sealer("runs", row.id).read(row.mcp_headers)
        values: dict[str, Any] = {name: getattr(row, name) for name in (*_PLAIN_RUN, "seq")}
        values |= {name: _read(getattr(row, name)) for name in ("prompt", "result", "error")}
        return RunRecord(**values, given=_read(row.given) or {}, mcp_headers=headers, sealed=sealed)

    def session(self, row: Row[Any]) -> SessionRecord:
        """A row as a session."""
        plan, sealed = self._sealer("sessions", row.id).read(row.plan)
        values: dict[str, Any] = {name: getattr(row, name) for name in (*_PLAIN_SESSION, "seq")}
        return SessionRecord(**values, plan=plan, sealed=sealed)

    def plan(self, session_id: str, text: str) -> Mapping[str, Any]:
        """The plan of a session, as its column holds it."""
        return self._sealer("sessions", session_id).read(text)[0]

    def _sealer(self, kind: str, name: str) -> Sealer:
        return self.store.sealer(kind, name)


def written(value: object) -> str | None:
    """A JSON value as a column holds it; None is no value."""
    return None if value is None else json.dumps(value)


def _read(text: str | None) -> Any:  # noqa: ANN401 - any JSON value
    return None if text is None else json.loads(text)
