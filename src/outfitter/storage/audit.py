"""The audit database: every call once, taken from the journal, asked by people and pages.

SQLite in write-ahead mode; one transaction takes a piece of the journal and notes how far it was read, so a process
that dies in between takes the same piece again and nothing twice. PostgreSQL can stand behind the same four methods.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from outfitter.errors import StorageUnavailable
from outfitter.storage.journal import read_lines, remove_if_done, segments

_TEXTS = (
    "agent", "token_id", "run_id", "server", "tool", "shown", "decision", "rule", "outcome", "code", "lane",
    "digest", "trace_id", "span_id", "parent_id",
)  # fmt: skip
_NUMBERS = ("started_at", "duration", "bytes_in", "bytes_out")
_KEPT = ("arguments", "result")
COLUMNS = ("call_id", *_NUMBERS, *_TEXTS, *_KEPT)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS calls (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, call_id TEXT NOT NULL UNIQUE,
  {", ".join(f"{name} REAL NOT NULL" for name in _NUMBERS)},
  {", ".join(f"{name} TEXT NOT NULL" for name in _TEXTS)},
  {", ".join(f"{name} TEXT" for name in _KEPT)}
);
CREATE INDEX IF NOT EXISTS calls_by_time ON calls (started_at);
CREATE TABLE IF NOT EXISTS taken (segment TEXT PRIMARY KEY, place INTEGER NOT NULL);
"""
_TAKE = f"""
INSERT OR IGNORE INTO calls ({", ".join(COLUMNS)})
SELECT json_extract(value, '$.call_id'),
  {", ".join(f"ifnull(json_extract(value, '$.{name}'), 0)" for name in _NUMBERS)},
  {", ".join(f"ifnull(json_extract(value, '$.{name}'), '')" for name in _TEXTS)},
  {", ".join(f"json_extract(value, '$.{name}')" for name in _KEPT)}
FROM json_each(?) WHERE json_extract(value, '$.call_id') IS NOT NULL
"""  # noqa: S608 - made of the names above, nothing from outside
_FILTERS = {"agent": "agent = ?", "server": "server = ?", "tool": "(tool = ? OR shown = ?)", "outcome": "outcome = ?"}


class AuditStore(Protocol):
    """Where records end up."""

    def place(self, segment: str) -> int:
        """How far a segment has been taken."""
        ...

    def take(self, segment: str, place: int, lines: bytes) -> None:
        """Take whole lines that begin at ``place``, and note that they are taken: both or nothing."""
        ...

    def forget(self, segment: str) -> None:
        """A segment is gone."""
        ...

    def calls(self, after: int = 0, limit: int = 1000, wanted: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Calls after a sequence number, oldest first."""
        ...


@dataclass(slots=True)
class SqliteAudit:
    """The audit database in a file. Used by one thread at a time."""

    path: Path
    _open: sqlite3.Connection | None = field(default=None, repr=False)

    def place(self, segment: str) -> int:
        """How far a segment has been taken."""
        row = self._connection().execute("SELECT place FROM taken WHERE segment = ?", (segment,)).fetchone()
        return 0 if row is None else int(row[0])

    def take(self, segment: str, place: int, lines: bytes) -> None:
        """Take whole lines that begin at ``place``, and note that they are taken: both or nothing."""
        base = self._connection()
        with base:
            base.execute("BEGIN IMMEDIATE")
            if self.place(segment) != place:
                return
            base.execute(_TAKE, (self._as_array(lines),))
            base.execute("INSERT OR REPLACE INTO taken VALUES (?, ?)", (segment, place + len(lines)))

    def forget(self, segment: str) -> None:
        """A segment is gone."""
        base = self._connection()
        with base:
            base.execute("DELETE FROM taken WHERE segment = ?", (segment,))

    def last(self) -> int:
        """The sequence number of the newest call; 0 when there is none."""
        return int(self._connection().execute("SELECT ifnull(max(seq), 0) FROM calls").fetchone()[0])

    def calls(self, after: int = 0, limit: int = 1000, wanted: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Calls after a sequence number, oldest first; ``wanted`` are agent, server, tool or outcome."""
        clauses, values = ["seq > ?"], [str(after)]
        for name, value in (wanted or {}).items():
            clauses.append(_FILTERS[name])
            values += [value] * _FILTERS[name].count("?")
        names = ("seq", *COLUMNS)
        asked = f"SELECT {', '.join(names)} FROM calls WHERE {' AND '.join(clauses)} ORDER BY seq LIMIT ?"  # noqa: S608 - same
        rows = self._connection().execute(asked, (*values, limit))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def since(self, moment: float, limit: int = 200_000) -> list[tuple[str, str, float]]:
        """Server, outcome and duration of every call that began since a moment, newest first."""
        asked = "SELECT server, outcome, duration FROM calls WHERE started_at >= ? ORDER BY started_at DESC LIMIT ?"
        return self._connection().execute(asked, (moment, limit)).fetchall()

    def close(self) -> None:
        """Close the file."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _as_array(self, lines: bytes) -> str:
        """The lines as one JSON array; lines that are not JSON are left out. SQLite looks, as it holds up no thread."""
        kept = [line for line in lines.split(b"\n") if line.strip(b"\0 ")]
        text = (b"[" + b",".join(kept) + b"]").decode(errors="replace")
        if self._connection().execute("SELECT json_valid(?)", (text,)).fetchone()[0]:
            return text
        return json.dumps(list(_readable(kept)))

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._open = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5.0)
                self._open.execute("PRAGMA journal_mode = WAL")
                self._open.execute("PRAGMA synchronous = NORMAL")
                self._open.executescript(_SCHEMA)
                self.path.chmod(0o600)
            except (sqlite3.Error, OSError) as error:
                self.close()
                raise StorageUnavailable(
                    f"the audit database cannot be opened: {error}", where=str(self.path)
                ) from None
        return self._open


def drain(folder: Path, store: AuditStore) -> int:
    """Take what the journal has and the store has not; segments that are done go. Answers how many bytes were taken."""
    taken = 0
    try:
        for path in segments(folder):
            place = store.place(path.name)
            for lines in read_lines(path, place):
                store.take(path.name, place, lines)
                place += len(lines)
                taken += len(lines)
            if remove_if_done(path, place):
                store.forget(path.name)
    except FileNotFoundError:
        return taken  # another process has taken it
    except (sqlite3.Error, OSError) as error:
        raise StorageUnavailable(f"records wait in the journal: {error}", where=str(folder)) from None
    return taken


def _readable(lines: Iterable[bytes]) -> Iterable[Mapping[str, object]]:
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found
