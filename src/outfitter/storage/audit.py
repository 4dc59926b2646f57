"""The audit database: every call once, taken from the journal, asked by people and pages.

``AuditStore`` is the port; behind it stands a file (``sqlite_audit``) or a PostgreSQL that several machines share
(``postgres_audit``). Whoever drains a journal holds the lock of its folder; this module does not ask who that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from outfitter.basics import Secret
from outfitter.errors import StorageUnavailable
from outfitter.storage.journal import read_lines, remove_if_done, segments
from outfitter.storage.sqlite_audit import SqliteAudit


class Taker(Protocol):
    """Who takes records from a journal."""

    def place(self, segment: str) -> int:
        """How far a segment has been taken."""
        ...

    def take(self, segment: str, place: int, lines: bytes) -> None:
        """Take whole lines that begin at ``place``, and note that they are taken: both or nothing."""
        ...

    def forget(self, segment: str) -> None:
        """A segment is gone."""
        ...


class AuditStore(Taker, Protocol):
    """Where records end up. Used by one thread at a time; StorageUnavailable when it cannot be used now."""

    def last(self) -> int:
        """The sequence number of the newest call; 0 when there is none."""
        ...

    def calls(
        self, last: int = 0, limit: int = 1000, wanted: Mapping[str, str] | None = None, *, newest_first: bool = False
    ) -> list[dict[str, Any]]:
        """Calls after a sequence number, oldest first, or before it, newest first; 0 is the beginning of either.

        ``wanted`` are agent, server, tool, decision, outcome, run, or since and until: moments in seconds since 1970,
        as text.
        """
        ...

    def since(self, moment: float, limit: int = 200_000) -> list[tuple[str, str, float]]:
        """Server, outcome and duration of every call that began since a moment, newest first."""
        ...

    def timings(
        self, wanted: Mapping[str, str] | None = None, limit: int = 20_000
    ) -> list[tuple[float, float, str, str, str]]:
        """When each call began, how long it took, its outcome, agent and server, newest first; chosen as ``calls``."""
        ...

    def remove_before(self, moment: float, most: int = 1000) -> int:
        """Remove calls that began before a moment, the oldest first; answers how many, never more than ``most``."""
        ...

    def close(self) -> None:
        """Let go of it; it opens again when it is used."""
        ...


def open_audit(state: Path, database: Secret | None = None) -> AuditStore:
    """The database of a state folder, or the PostgreSQL of a URL; nothing is opened before it is used."""
    if database is None:
        return SqliteAudit(state / "audit.sqlite")
    from outfitter.storage.postgres_audit import PostgresAudit

    return PostgresAudit(database)


def drain(folder: Path, store: Taker, should_stop: Callable[[], bool] = lambda: False) -> int:
    """Take what the journal has and the store has not; segments that are done go. Answers how many bytes were taken."""
    taken = 0
    try:
        for path in segments(folder):
            place = store.place(path.name)
            for lines in read_lines(path, place):
                store.take(path.name, place, lines)
                place += len(lines)
                taken += len(lines)
                if should_stop():
                    return taken
            if remove_if_done(path, place):
                store.forget(path.name)
    except FileNotFoundError:
        return taken  # another process has taken it
    except OSError as error:
        raise StorageUnavailable(f"records wait in the journal: {error}", where=str(folder)) from None
    return taken
