"""One writer's turn: puts, deletions and approvals that are kept together or not at all.

Every one leaves a change with what stood there before and after. Who uses which entry is kept in step. That documents
are valid and refer to what exists is the caller's care: it reads what it needs in the same turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Executable, Row, bindparam, delete, insert, select, update

from outfitter.errors import Invalid, NotFound, VersionConflict
from outfitter.storage.registry.drafts import Draft
from outfitter.storage.registry.entries import EntryReader, Page
from outfitter.storage.registry.sealing import Sealer
from outfitter.storage.registry.store import Store, Turn
from outfitter.storage.registry.tables import changes, entries, uses
from outfitter.storage.registry.values import Action, Delete, Entry, Kind, Put, User

_PARTS = ("before", "after")


@dataclass(slots=True)
class Writing:
    """What may be done in a ``changing`` block. It sees its own changes; nobody else does before the block ends."""

    who: str
    _store: Store
    _turn: Turn
    _reader: EntryReader

    @property
    def revision(self) -> int:
        """The revision that the registry has when this block ends well."""
        return self._turn.value + 1

    async def entries(
        self, kind: Kind | None = None, *, after: str | None = None, limit: int | None = None, text: str | None = None
    ) -> tuple[Entry, ...]:
        """The entries as they stand in this block; as in ``Registry.entries``."""
        return await self._reader.entries(kind, Page(after, limit, text))

    async def entry(self, kind: Kind, name: str) -> Entry | None:
        """The entry of this id as it stands in this block."""
        return await self._reader.entry(kind, name)

    async def users_of(self, name: str, kind: Kind = "mcp-servers") -> tuple[User, ...]:
        """The entries that refer to this one, as they stand in this block."""
        return await self._reader.users_of(name, kind)

    async def put(self, put: Put) -> Entry:
        """Store a document and answer the entry as it is now; VersionConflict when another version stands there."""
        (entry,) = await self.put_all((put,))
        return entry

    async def put_all(self, puts: Sequence[Put]) -> tuple[Entry, ...]:
        """Store many documents, each id once, in a few statements; for the rest as ``put``."""
        places = {(put.kind, put.id) for put in puts}
        if len(places) < len(puts):
            raise Invalid("an entry is given twice", hint="put each id once, or in two steps")
        rows = await self._reader.rows(places)
        last = await self._reader.last_versions(places - set(rows))
        drafts = [self._draft(put, rows.get((put.kind, put.id)), last) for put in puts]
        await self._store_all(drafts)
        return tuple(draft.entry(self._sealer(draft.put)) for draft in drafts)

    async def delete(self, gone: Delete) -> None:
        """Take an entry away; NotFound when there is none, VersionConflict when another version stands there."""
        row = await self._reader.row(gone.kind, gone.id)
        _check(gone, row)
        if row is None:
            raise _missing(gone.kind, gone.id)
        await self._turn.connection.execute(delete(entries).where(*_here(gone)))
        await self._forget_uses([gone])
        await self._note([self._change(gone, "delete", row.version + 1) | {"before": row.document, "after": None}])

    async def approve(self, kind: Kind, name: str, digest: str | None) -> Entry:
        """Note the digest of the command that may be started; None takes the approval back."""
        row = await self._reader.row(kind, name)
        if row is None:
            raise _missing(kind, name)
        here, version = Delete(kind, name), row.version + 1
        values = {"approved": digest, "version": version, "updated_at": self._store.now(), "updated_by": self.who}
        await self._turn.connection.execute(update(entries).where(*_here(here)).values(values))
        same = {"before": row.document, "after": row.document}
        await self._note([self._change(here, "approve", version) | same])
        return await self._stored(kind, name)

    async def seal_past(self, kind: Kind, name: str, find: Callable[[Mapping[str, Any]], frozenset[str]]) -> None:
        """Seal what ``find`` finds in the earlier documents of an entry, by JSON pointer; it is no change of it."""
        here = (changes.c.kind == kind, changes.c.id == name)
        rows = (await self._turn.connection.execute(select(changes).where(*here))).mappings().all()
        sealer = self._store.sealer(kind, name)

        def sealed(text: str | None) -> str | None:
            document = None if text is None else json.loads(text)
            return None if document is None else sealer.write(document, find(document))

        again = [{"of_seq": row["seq"], **{part: sealed(row[part]) for part in _PARTS}} for row in rows]
        known = [{"of_seq": row["seq"], **{part: row[part] for part in _PARTS}} for row in rows]
        mine = update(changes).where(changes.c.seq == bindparam("of_seq"))
        await self._run(mine, [new for new, old in zip(again, known, strict=True) if new != old])

    def _sealer(self, of: Put) -> Sealer:
        return self._store.sealer(of.kind, of.id)

    def _draft(self, put: Put, row: Row[Any] | None, last: Mapping[tuple[str, str], int]) -> Draft:
        """What the put becomes. Its version is one more than ever: what is made again never has an old ETag."""
        _check(put, row)
        version = 1 + (last.get((put.kind, put.id), 0) if row is None else int(row.version))
        text = self._sealer(put).write(put.document, put.sealed)
        return Draft(put, row, version, text, self._store.now(), self.who)

    async def _store_all(self, drafts: Sequence[Draft]) -> None:
        new = [draft for draft in drafts if draft.row is None]
        old = [draft for draft in drafts if draft.row is not None]
        await self._run(insert(entries), [draft.values() | draft.place | {"created_at": draft.at} for draft in new])
        values = [draft.values() | {"of_kind": draft.put.kind, "of_id": draft.put.id} for draft in old]
        here = (entries.c.kind == bindparam("of_kind"), entries.c.id == bindparam("of_id"))
        await self._run(update(entries).where(*here), values)
        await self._forget_uses([draft.put for draft in old])
        await self._run(insert(uses), [use for draft in drafts for use in draft.uses()])
        before = [None if draft.row is None else draft.row.document for draft in drafts]
        await self._note(
            self._change(draft.put, draft.action, draft.version) | {"before": text, "after": draft.text}
            for draft, text in zip(drafts, before, strict=True)
        )

    def _change(self, of: Put | Delete, action: Action, version: int) -> dict[str, Any]:
        head: dict[str, Any] = {"revision": self.revision, "at": self._store.now(), "who": self.who}
        return head | {"action": action, "kind": of.kind, "id": of.id, "version": version}

    async def _note(self, noted: Iterable[dict[str, Any]]) -> None:
        rows = list(noted)
        self._turn.moved = self._turn.moved or bool(rows)
        await self._run(insert(changes), rows)

    async def _forget_uses(self, of: Sequence[Put | Delete]) -> None:
        here = (uses.c.kind == bindparam("of_kind"), uses.c.id == bindparam("of_id"))
        await self._run(delete(uses).where(*here), [{"of_kind": each.kind, "of_id": each.id} for each in of])

    async def _run(self, statement: Executable, rows: list[dict[str, Any]]) -> None:
        if rows:
            await self._turn.connection.execute(statement, rows)

    async def _stored(self, kind: Kind, name: str) -> Entry:
        entry = await self._reader.entry(kind, name)
        if entry is None:
            raise _missing(kind, name)
        return entry


def _here(of: Put | Delete) -> tuple[Any, Any]:
    return entries.c.kind == of.kind, entries.c.id == of.id


def _missing(kind: str, name: str) -> NotFound:
    return NotFound("there is no such entry", where=f"{kind}/{name}")


def _check(wanted: Put | Delete, row: Row[Any] | None) -> None:
    """Refuse a change of another version than the one that stands there."""
    current = 0 if row is None else int(row.version)
    if wanted.expected is None or wanted.expected == current:
        return
    stands = f"version {current} stands there" if current else "it does not exist"
    message = f"version {wanted.expected} was expected, {stands}"
    if not wanted.expected:
        message = f"it exists already, in version {current}"
    hint = "read it again and repeat the change"
    raise VersionConflict(message, current=current, where=f"{wanted.kind}/{wanted.id}", hint=hint)
