"""The audit database in a file: SQLite in write-ahead mode, so that reading holds nobody up.

One transaction takes a piece of the journal and notes how far it was read: a process that dies in between takes the
same piece again, and nothing twice. Many rows go in with one statement, as the interpreter's lock is free only while a
statement runs. A file of an earlier layout is read as it is, and brought up to date when it is first written to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from outfitter.errors import StorageUnavailable
from outfitter.storage.rows import COLUMNS, INTEGERS, KEPT, REALS, TIMED, batches, place_of, rows_of

_VERSION = 1
_ROWS_AT_A_TIME = 256
_NAMES = ", ".join(COLUMNS)
_TYPES = (
    dict.fromkeys(REALS, "REAL NOT NULL") | dict.fromkeys(INTEGERS, "INTEGER NOT NULL") | dict.fromkeys(KEPT, "TEXT")
)
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS taken (segment TEXT PRIMARY KEY, place INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS calls (seq INTEGER PRIMARY KEY AUTOINCREMENT, "
    + ", ".join(f"{name} {_TYPES.get(name, 'TEXT NOT NULL')}" for name in COLUMNS)
    + ")",
    "CREATE INDEX IF NOT EXISTS calls_by_time ON calls (started_at)",
    f"PRAGMA user_version = {_VERSION}",
)
# The first layout had an index over the random call ids, which cost more than all the rest.
_FROM_THE_FIRST = (
    "ALTER TABLE calls RENAME TO calls_before",
    "DROP INDEX calls_by_time",
    *_SCHEMA,
    f"INSERT INTO calls (seq, {_NAMES}) SELECT seq, {_NAMES} FROM calls_before ORDER BY seq",  # noqa: S608 - names of ours
    "DROP TABLE calls_before",
)
_FILTERS = {
    "agent": "agent = ?", "server": "server = ?", "tool": "(tool = ? OR shown = ?)", "outcome": "outcome = ?",
    "decision": "decision = ?", "run": "run_id = ?", "until": "started_at < ?",
    # By itself the second half would be enough; the first finds by the index where to begin.
    "since": "seq >= (SELECT min(seq) FROM calls WHERE started_at >= ?) AND started_at >= ?",
}  # fmt: skip


@dataclass(slots=True)
class SqliteAudit:
    """The audit database in a file. Used by one thread at a time."""

    path: Path
    _open: sqlite3.Connection | None = field(default=None, repr=False)

    def place(self, segment: str) -> int:
        """How far a segment has been taken."""
        with self._asking() as base:
            return _place(base, segment)

    def take(self, segment: str, place: int, lines: bytes) -> None:
        """Take whole lines that begin at ``place``, and note that they are taken: both or nothing."""
        with self._changing() as base:
            if _place(base, segment) != place:
                return
            for batch in batches(rows_of(lines), _ROWS_AT_A_TIME):
                base.execute(_insert(len(batch)), list(chain.from_iterable(batch)))
            base.execute("INSERT OR REPLACE INTO taken VALUES (?, ?)", (segment, place + len(lines)))

    def forget(self, segment: str) -> None:
        """A segment is gone."""
        with self._changing() as base:
            base.execute("DELETE FROM taken WHERE segment = ?", (segment,))

    def last(self) -> int:
        """The sequence number of the newest call; 0 when there is none."""
        with self._asking() as base:
            return int(base.execute("SELECT ifnull(max(seq), 0) FROM calls").fetchone()[0])

    def calls(
        self, last: int = 0, limit: int = 1000, wanted: Mapping[str, str] | None = None, *, newest_first: bool = False
    ) -> list[dict[str, Any]]:
        """Calls after a sequence number, oldest first, or before it, newest first: see ``AuditStore``."""
        place, order = place_of(last, newest_first=newest_first)
        clauses, values = _clauses(wanted or {})
        asked = f"SELECT seq, {_NAMES} FROM calls WHERE seq {place} ?{clauses} ORDER BY seq {order} LIMIT ?"  # noqa: S608 - same
        with self._asking() as base:
            rows = base.execute(asked, (last, *values, limit)).fetchall()
        return [dict(zip(("seq", *COLUMNS), row, strict=True)) for row in rows]

    def since(self, moment: float, limit: int = 200_000) -> list[tuple[str, str, float]]:
        """Server, outcome and duration of every call that began since a moment, newest first."""
        asked = "SELECT server, outcome, duration FROM calls WHERE started_at >= ? ORDER BY started_at DESC LIMIT ?"
        with self._asking() as base:
            return base.execute(asked, (moment, limit)).fetchall()

    def timings(
        self, wanted: Mapping[str, str] | None = None, limit: int = 20_000
    ) -> list[tuple[float, float, str, str, str]]:
        """When each call began, how long it took, its outcome, agent and server: see ``AuditStore``."""
        clauses, values = _clauses(wanted or {})
        asked = f"SELECT {', '.join(TIMED)} FROM calls WHERE 1{clauses} ORDER BY seq DESC LIMIT ?"  # noqa: S608 - same
        with self._asking() as base:
            return base.execute(asked, (*values, limit)).fetchall()

    def remove_before(self, moment: float, most: int = 1000) -> int:
        """Remove calls that began before a moment, the oldest first; their room in the file is used again."""
        oldest = "SELECT seq FROM calls WHERE started_at < ? ORDER BY started_at LIMIT ?"
        with self._changing() as base:
            return base.execute(f"DELETE FROM calls WHERE seq IN ({oldest})", (moment, most)).rowcount  # noqa: S608 - same

    def close(self) -> None:
        """Close the file."""
        if self._open is not None:
            self._open.close()
            self._open = None

    @contextmanager
    def _asking(self) -> Generator[sqlite3.Connection]:
        try:
            yield self._connection()
        except sqlite3.Error as error:
            raise StorageUnavailable(f"the audit database cannot be used: {error}", where=str(self.path)) from None

    @contextmanager
    def _changing(self) -> Generator[sqlite3.Connection]:
        """One transaction, in a file of the newest layout."""
        with self._asking() as base, base:
            base.execute("BEGIN IMMEDIATE")
            if _version(base) < _VERSION:
                for statement in _FROM_THE_FIRST:
                    base.execute(statement)
            yield base

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                base = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5.0)
            except (sqlite3.Error, OSError) as error:
                told = f"the audit database cannot be opened: {error}"
                raise StorageUnavailable(told, where=str(self.path)) from None
            self._open = base
            try:
                self._prepare(base)
            except BaseException:
                self.close()
                raise
        return self._open

    def _prepare(self, base: sqlite3.Connection) -> None:
        self.path.chmod(0o600)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 4000", "cache_size = -1000"):
            base.execute(f"PRAGMA {pragma}")
        if _version(base) > _VERSION:
            told = "the audit database was made by a newer Outfitter"
            raise StorageUnavailable(told, where=str(self.path), hint="use that version, or another state folder")
        if not _has_tables(base):
            with base:
                base.execute("BEGIN IMMEDIATE")
                for statement in () if _has_tables(base) else _SCHEMA:
                    base.execute(statement)


def _clauses(wanted: Mapping[str, str]) -> tuple[str, list[str]]:
    """What a statement says of the calls that are wanted, and its values."""
    found = [(_FILTERS[name], value) for name, value in wanted.items()]
    text = "".join(f" AND {clause}" for clause, _ in found)
    return text, [value for clause, value in found for _ in range(clause.count("?"))]


def _has_tables(base: sqlite3.Connection) -> bool:
    return base.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchone() is not None


def _version(base: sqlite3.Connection) -> int:
    return int(base.execute("PRAGMA user_version").fetchone()[0])


def _place(base: sqlite3.Connection, segment: str) -> int:
    row = base.execute("SELECT place FROM taken WHERE segment = ?", (segment,)).fetchone()
    return 0 if row is None else int(row[0])


@cache
def _insert(rows: int) -> str:
    """The statement that takes so many rows."""
    one = f"({', '.join('?' * len(COLUMNS))})"
    return f"INSERT INTO calls ({_NAMES}) VALUES {', '.join([one] * rows)}"  # noqa: S608 - same
