"""The team's registry in a database: servers, capabilities and agents, every change with who, when, before and after.

Readers never wait. Writers take turns over all processes (``changing``), and whoever follows hears of every new
revision within a second, whichever process made it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import select

from outfitter.storage.registry.entries import EntryReader, Page
from outfitter.storage.registry.store import Store
from outfitter.storage.registry.tables import changes, counters
from outfitter.storage.registry.values import Change, Entry, Kind, Past, User
from outfitter.storage.registry.watching import Watch
from outfitter.storage.registry.writing import Writing


@dataclass(frozen=True, slots=True)
class Registry:
    """The entries and their history."""

    _store: Store
    _watch: Watch

    async def revision(self) -> int:
        """The number of the newest committed change; 0 when there was none."""
        async with self._store.reading() as connection:
            asked = select(counters.c.value).where(counters.c.name == "revision")
            return int((await connection.execute(asked)).scalar_one())

    async def entries(
        self, kind: Kind | None = None, *, after: str | None = None, limit: int | None = None, text: str | None = None
    ) -> tuple[Entry, ...]:
        """The entries, sorted by kind and id, sealed literals opened.

        Of one kind they can be taken in pages: ``after`` is the last id of the page before. ``text`` keeps those that
        have it in their id, name or description, in whatever case.
        """
        async with self._reading() as reader:
            return await reader.entries(kind, Page(after, limit, text))

    async def entry(self, kind: Kind, name: str) -> Entry | None:
        """The entry of this id, sealed literals opened."""
        async with self._reading() as reader:
            return await reader.entry(kind, name)

    async def users_of(self, name: str, kind: Kind = "mcp-servers") -> tuple[User, ...]:
        """The entries that refer to this one, by kind and id."""
        async with self._reading() as reader:
            return await reader.users_of(name, kind)

    async def state(self) -> tuple[int, tuple[Entry, ...]]:
        """The revision and all entries of that revision, read together."""
        async with self._reading() as reader:
            asked = select(counters.c.value).where(counters.c.name == "revision")
            revision = int((await reader.connection.execute(asked)).scalar_one())
            return revision, await reader.entries(None, Page())

    @asynccontextmanager
    async def changing(self, who: str) -> AsyncGenerator[Writing]:
        """A turn as the only writer, over all processes: kept when the block ends, on disk, or nothing on any error.

        StorageUnavailable when the turn does not come within the time that the database was opened with.
        """
        async with self._store.writing("revision") as turn:
            yield Writing(who, self._store, turn, EntryReader(turn.connection, self._store.keys))

    async def changes(
        self,
        kind: Kind | None = None,
        name: str | None = None,
        *,
        after: int = 0,
        limit: int = 100,
        newest_first: bool = False,
    ) -> tuple[Change, ...]:
        """Changes by their sequence number: those after ``after``, or going back from before it, newest first.

        With ``newest_first``, ``after`` 0 begins at the newest change.
        """
        asked = select(changes).limit(limit)
        asked = asked.order_by(changes.c.seq.desc() if newest_first else changes.c.seq)
        if not newest_first:
            asked = asked.where(changes.c.seq > after)
        elif after:
            asked = asked.where(changes.c.seq < after)
        if kind is not None:
            asked = asked.where(changes.c.kind == kind)
        if name is not None:
            asked = asked.where(changes.c.id == name)
        async with self._reading() as reader:
            return await reader.changes(asked)

    async def past(self, kind: Kind, name: str, version: int) -> Past | None:
        """The document an entry had in a version, opened, to be put again; None when it had none (deleted, unknown)."""
        async with self._reading() as reader:
            return await reader.past(kind, name, version)

    def follow(self) -> AsyncGenerator[int]:
        """The present revision at once, then the newest one whenever it has moved, by whichever process.

        It goes on when the database was away for a while, and ends when the database is closed.
        """
        return self._watch.follow("revision")

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[EntryReader]:
        async with self._store.reading() as connection:
            yield EntryReader(connection, self._store.keys)
