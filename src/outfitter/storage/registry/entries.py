"""Reading entries, their users and their changes on a connection: for readers and for a writer in its turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from outfitter.storage.registry.drafts import searchable
from outfitter.storage.registry.keys import KeyRing
from outfitter.storage.registry.sealing import Sealer
from outfitter.storage.registry.tables import changes, entries, uses
from outfitter.storage.registry.values import Change, Entry, Kind, Past, User


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is wanted: after a cursor, so many, with a text in its id, name or description."""

    after: str | None = None
    limit: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class EntryReader:
    """Reads entries on one connection, so in one state of the database."""

    connection: AsyncConnection
    keys: KeyRing

    async def entries(self, kind: Kind | None, page: Page) -> tuple[Entry, ...]:
        """Entries by kind and id."""
        asked = select(entries).order_by(entries.c.kind, entries.c.id).limit(page.limit)
        if kind is not None:
            asked = asked.where(entries.c.kind == kind)
        if page.after is not None:
            asked = asked.where(entries.c.id > page.after)
        if page.text:
            found_in = func.instr if self.connection.dialect.name == "sqlite" else func.strpos
            asked = asked.where(found_in(entries.c.search, searchable(page.text)) > 0)
        return tuple(self._entry(row) for row in await self._rows(asked))

    async def entry(self, kind: Kind, name: str) -> Entry | None:
        """The entry of this id."""
        row = await self.row(kind, name)
        return None if row is None else self._entry(row)

    async def row(self, kind: Kind, name: str) -> Row[Any] | None:
        """The entry as it is stored. What cannot be written cannot be there: no question to the database."""
        if not can_be_stored(name):
            return None
        asked = select(entries).where(entries.c.kind == kind, entries.c.id == name)
        return (await self.connection.execute(asked)).one_or_none()

    async def users_of(self, name: str, kind: Kind) -> tuple[User, ...]:
        """The entries that refer to this one."""
        asked = select(uses).where(uses.c.used_kind == kind, uses.c.used_id == name)
        rows = await self._rows(asked.order_by(uses.c.kind, uses.c.id))
        return tuple(User(row.kind, row.id) for row in rows)

    async def changes(self, asked: Select[Any]) -> tuple[Change, ...]:
        """The changes that were asked for."""
        return tuple(_change(row) for row in await self._rows(asked))

    async def past(self, kind: Kind, name: str, version: int) -> Past | None:
        """The document an entry had in a version."""
        here = (changes.c.kind == kind, changes.c.id == name, changes.c.version == version)
        text = (await self.connection.execute(select(changes.c.after).where(*here))).scalar_one_or_none()
        if text is None:
            return None
        document, sealed = Sealer(self.keys, kind, name).read(text)
        return Past(kind, name, version, document, sealed)

    async def rows(self, places: AbstractSet[tuple[str, str]]) -> dict[tuple[str, str], Row[Any]]:
        """Those of these entries that exist, as they are stored."""
        found: dict[tuple[str, str], Row[Any]] = {}
        for some in batched(places):
            asked = select(entries).where(tuple_(entries.c.kind, entries.c.id).in_(some))
            found |= {(row.kind, row.id): row for row in await self._rows(asked)}
        return found

    async def last_versions(self, places: AbstractSet[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """The newest version that each of these ever had; those that never were are left out."""
        found: dict[tuple[str, str], int] = {}
        names = (changes.c.kind, changes.c.id)
        for some in batched(places):
            asked: Select[Any] = select(*names, func.max(changes.c.version).label("last"))  # pyright: ignore[reportAssignmentType]
            rows = await self._rows(asked.where(tuple_(*names).in_(some)).group_by(*names))
            found |= {(row.kind, row.id): int(row.last) for row in rows}
        return found

    async def _rows(self, asked: Select[Any]) -> Sequence[Row[Any]]:
        return (await self.connection.execute(asked)).all()

    def _entry(self, row: Row[Any]) -> Entry:
        document, sealed = Sealer(self.keys, row.kind, row.id).read(row.document)
        times = (row.created_at, row.updated_at, row.updated_by)
        return Entry(row.kind, row.id, document, row.version, *times, approved=row.approved, sealed=sealed)


def can_be_stored(name: str) -> bool:
    """Whether both databases can keep a text: no NUL, no half of a character."""
    return "\0" not in name and not any("\ud800" <= letter <= "\udfff" for letter in name)


def _change(row: Row[Any]) -> Change:
    head = (row.seq, row.revision, row.at, row.who, row.action, row.kind, row.id, row.version)
    return Change(*head, before=_document(row.before), after=_document(row.after))


def _document(text: str | None) -> Mapping[str, Any] | None:
    return None if text is None else json.loads(text)


def batched(places: AbstractSet[tuple[str, str]], size: int = 500) -> Iterator[list[tuple[str, str]]]:
    """So many at once as a statement may name."""
    ordered = sorted(places)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]
