"""Which callbacks are owed, kept on disk: a runner that comes back delivers what it owed before.

A row is there from before its run is made until its delivery is certain. A delivery is a run of a known id that is
written down before it is asked for, so that asking again finds out whether it was made.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from outfitter.errors import StorageUnavailable

_TABLE = """CREATE TABLE IF NOT EXISTS owed (
    run_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, agent TEXT NOT NULL, parent_id TEXT NOT NULL, delivery TEXT
) STRICT"""
_COLUMNS = "run_id, session_id, agent, parent_id, delivery"
_BUSY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Owed:
    """The result of a run that a parent session is to be resumed with; ``delivery`` is the run that does."""

    run_id: str
    session_id: str
    agent: str
    parent_id: str
    delivery: str | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The file of what is owed."""

    path: Path

    async def add(self, owed: Owed) -> None:
        """Write one down; StorageUnavailable when that fails."""
        row = (owed.run_id, owed.session_id, owed.agent, owed.parent_id, owed.delivery)
        await self._change([("INSERT OR REPLACE INTO owed VALUES (?, ?, ?, ?, ?)", row)])

    async def settle(self, run_ids: Sequence[str]) -> None:
        """Nothing is owed for these any more."""
        await self._change([("DELETE FROM owed WHERE run_id = ?", (run_id,)) for run_id in run_ids])

    async def assign(self, run_ids: Sequence[str], delivery: str | None) -> None:
        """These go with this delivery; None: with none yet."""
        change = "UPDATE owed SET delivery = ? WHERE run_id = ?"
        await self._change([(change, (delivery, run_id)) for run_id in run_ids])

    async def of(self, parent_id: str) -> tuple[Owed, ...]:
        """What is owed to a session, oldest first."""
        return await anyio.to_thread.run_sync(self._read, "WHERE parent_id = ?", (parent_id,))

    async def parents(self) -> tuple[str, ...]:
        """To whom something is owed."""
        found: tuple[Owed, ...] = await anyio.to_thread.run_sync(self._read, "", ())
        return tuple(dict.fromkeys(owed.parent_id for owed in found))

    async def _change(self, changes: Sequence[tuple[str, tuple[str | None, ...]]]) -> None:
        # A write that is cut off would leave its thread behind.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._write, changes)

    def _write(self, changes: Sequence[tuple[str, tuple[str | None, ...]]]) -> None:
        with self._open() as database, database:
            for statement, values in changes:
                database.execute(statement, values)

    def _read(self, where: str, values: tuple[str, ...]) -> tuple[Owed, ...]:
        with self._open() as database:
            rows = database.execute(f"SELECT {_COLUMNS} FROM owed {where} ORDER BY rowid", values)  # noqa: S608 - the texts are ours
            return tuple(Owed(*row) for row in rows)

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS)) as database:
                self.path.chmod(0o600)
                database.execute("PRAGMA synchronous = FULL")
                database.execute(_TABLE)
                yield database
        except (sqlite3.Error, OSError) as error:
            raise StorageUnavailable(
                f"callbacks cannot be kept: {type(error).__name__}", where=str(self.path)
            ) from None
