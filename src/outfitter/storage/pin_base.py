"""The file of pins: how it is opened, asked and changed, and how one hears that another process has changed it.

SQLite in write-ahead mode, for its owner only. What stands in it is ``pins`` and ``late_tools``.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from outfitter.errors import StorageUnavailable
from outfitter.storage.shared_file import open_shared

_VERSION = 1
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS pins (server TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
    digest TEXT NOT NULL, bare TEXT NOT NULL, text TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL,
    was TEXT NOT NULL, since TEXT NOT NULL, decided TEXT NOT NULL, by TEXT NOT NULL,
    UNIQUE (server, kind, name, digest))""",
    """CREATE TABLE IF NOT EXISTS seen (server TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL,
    since TEXT NOT NULL, waits INTEGER NOT NULL, PRIMARY KEY (server, agent, tool)) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS servers (server TEXT PRIMARY KEY, revision INTEGER NOT NULL)",
    f"PRAGMA user_version = {_VERSION}",
)
_TOUCH = "INSERT INTO servers VALUES (?, 1) ON CONFLICT (server) DO UPDATE SET revision = revision + 1"


@dataclass(slots=True, weakref_slot=True)
class PinBase:
    """One file. ``lock`` is held by whoever uses it; ``on_change`` hears that what was read may not hold any more."""

    path: Path
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    on_change: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]], repr=False)
    _open_base: sqlite3.Connection | None = field(default=None, repr=False)
    _version: int = -1
    _told_of: dict[str, int] = field(default_factory=dict[str, int], repr=False)
    """The revisions of servers that ``changed`` has told of."""

    def query(self, statement: str, *values: str) -> list[tuple[str, ...]]:
        """The rows of a question; none when there is no file yet. StorageUnavailable when it cannot be read."""
        base = self._open(is_made=False)
        if base is None:
            return []
        with _faults(self.path):
            return base.execute(statement, values).fetchall()

    @contextmanager
    def writing(self, server: str, *, is_told: bool = False) -> Generator[sqlite3.Connection]:
        """One change about a server, all of it or nothing; ``is_told`` has other processes make their lists again."""
        base = self._open(is_made=True)
        if base is None:
            raise StorageUnavailable("the file of pins is not there", where=str(self.path))
        with _faults(self.path):
            base.execute("BEGIN IMMEDIATE")
            try:
                before = self._revisions().get(server, 0)
                yield base
                if is_told:
                    base.execute(_TOUCH, (server,))
                base.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    base.execute("ROLLBACK")
                raise
        self._forget()
        if self._told_of.get(server, before) == before:
            self._told_of[server] = before + is_told  # what others wrote before is still to be told

    def refresh(self, server: str = "") -> None:
        """Have what was read forgotten, if somebody else has written since; from now on the server is watched."""
        base = self._open(is_made=False)
        if base is not None:
            with _faults(self.path):
                version = int(base.execute("PRAGMA data_version").fetchone()[0])
            if version != self._version:
                self._version = version
                self._forget()
        if server and server not in self._told_of:
            self._told_of[server] = self._revisions().get(server, 0)

    def changed(self) -> tuple[str, ...]:
        """The servers about which another process has decided something since this was last asked."""
        with self.lock:
            try:
                self.refresh()
                now = self._revisions()
            except StorageUnavailable:
                return ()
            found = tuple(one for one, seen in self._told_of.items() if now.get(one, 0) != seen)
            self._told_of.update({one: now.get(one, 0) for one in found})
            return found

    def close(self) -> None:
        """Let the file go."""
        with self.lock:
            if self._open_base is not None:
                self._open_base.close()
                self._open_base = None

    def _forget(self) -> None:
        for forget in self.on_change:
            forget()

    def _revisions(self) -> Mapping[str, int]:
        return {str(server): int(number) for server, number in self.query("SELECT server, revision FROM servers")}

    def _open(self, *, is_made: bool) -> sqlite3.Connection | None:
        if self._open_base is None and (is_made or self.path.exists()):
            with _faults(self.path):
                self._open_base = open_shared(self.path, partial(_prepare, self.path))
                weakref.finalize(self, self._open_base.close)
        return self._open_base


def moment() -> str:
    """Now, as it is kept."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _prepare(path: Path, base: sqlite3.Connection) -> None:
    made = int(base.execute("PRAGMA user_version").fetchone()[0])
    if made > _VERSION:
        raise StorageUnavailable("the file of pins was made by a newer Outfitter", where=str(path))
    if made < _VERSION:
        base.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            base.execute(statement)
        base.execute("COMMIT")


@contextmanager
def _faults(path: Path) -> Generator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeError) as error:
        hint = "remove the file, and what servers show next is trusted"
        raise StorageUnavailable(f"the pins cannot be used: {error}", where=str(path), hint=hint) from None
