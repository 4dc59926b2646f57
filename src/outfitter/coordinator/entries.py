"""Servers, capabilities and agents of the team: listed, read, made, replaced, taken away, rolled back, approved.

Every change is read (``drafts``) and checked against the whole catalog inside the writer's turn, before anything is
kept. Reads are answered from memory (``live``). Not here: who may do it (``access``), HTTP (``api``).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from outfitter.coordinator.commands import command_digest
from outfitter.coordinator.drafts import Read, need_admin, read_draft
from outfitter.coordinator.events import EventLog
from outfitter.coordinator.keeping import check_kept, newly_judged, resealed
from outfitter.coordinator.listing import Listing, Wanted, check_limit, is_plain, read_number
from outfitter.coordinator.live import LiveCatalog
from outfitter.coordinator.preconditions import expected_version
from outfitter.coordinator.reading import raise_all
from outfitter.coordinator.sensitive import hidden_pointers, mask_sealed, masked, sensitive_pointers
from outfitter.coordinator.values import Author, Draft, Page, PastChange, Shown
from outfitter.coordinator.view import Change, View, problems_of, unknown
from outfitter.errors import AlreadyExists, Forbidden, InUse, Invalid, InvalidServer, NotFound
from outfitter.storage import Change as StoredChange
from outfitter.storage import Delete, Entry, Kind, Put, Registry, User, Writing
from outfitter.upstream import Guard

Choose = Callable[[View], tuple[Sequence[Draft], Sequence[User]]]
"""What to put and what to take away, by the registry as it stands."""
_VERSIONS = 2**31
_ACTIONS = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "rollback": "rolled_back",
    "approve": "approved",
}


class Entries:
    """The use cases of the registry."""

    def __init__(self, registry: Registry, live: LiveCatalog, events: EventLog, guard: Guard) -> None:
        """Write to ``registry``, read from ``live``, tell ``events``; ``guard`` says where servers may be."""
        self._registry = registry
        self._live = live
        self._events = events
        self._guard = guard
        self._listing = Listing()

    async def list(
        self, kind: Kind, *, cursor: str | None = None, limit: int = 100, text: str | None = None
    ) -> Page[Shown]:
        """Entries by id; ``text`` keeps those with it in id, name or description. Invalid for a strange limit."""
        view = self._live.view
        found, following = self._listing.page(view, kind, Wanted(cursor, limit, text))
        return Page(tuple(show(view, entry) for entry in found), following)

    async def get(self, kind: Kind, name: str) -> Shown:
        """One entry; UnknownServer, UnknownCapability or UnknownAgent when there is none."""
        view = self._live.view
        return show(view, view.entry(kind, name))

    async def create(self, kind: Kind, document: object, who: Author) -> Shown:
        """Store a new document under the id it names; AlreadyExists when the id is taken."""
        async with self._writing(who) as (writing, view):
            read = read_draft(view, kind, document, None, self._guard)
            if read.stored is not None:
                hint = "change the one there is, or choose another id"
                raise AlreadyExists("there is one of this id", where=f"{kind}/{read.name.id}", hint=hint)
            stored = await self._put(writing, view, [read], who)
        return await self._told("create", stored, who, writing.revision)

    async def replace(self, kind: Kind, name: str, document: object, if_match: str | None, who: Author) -> Shown:
        """Store a document in the place of the version that ``if_match`` names.

        PreconditionRequired without If-Match, VersionConflict when another version stands there. A MASK keeps what
        is stored in its place.
        """
        async with self._writing(who) as (writing, view):
            expected_version(view.entry(kind, name), if_match)
            read = read_draft(view, kind, document, name, self._guard)
            stored = await self._put(writing, view, [read], who)
        return await self._told("update", stored, who, writing.revision)

    async def delete(self, kind: Kind, name: str, if_match: str | None, who: Author, *, force: bool = False) -> None:
        """Take an entry away; InUse with its users when others refer to it, unless forced.

        Who still refers to it is then refused with ``missing_ref``, and its runs with it.
        """
        async with self._writing(who) as (writing, view):
            expected = expected_version(view.entry(kind, name), if_match)
            need_admin(view.entry(kind, name), None, who)
            users = view.users_of(User(kind, name))
            if users and not force:
                names = ", ".join(f"{user.kind}/{user.id}" for user in users[:10])
                raise InUse(f"it is used by {names}", users=users, where=f"{kind}/{name}", hint="change these first")
            await writing.delete(Delete(kind, name, expected))
        await self._live.reach(writing.revision)
        data = {"version": expected + 1, "who": who.name, "revision": writing.revision}
        await self._events.tell("entry.deleted", f"{kind}/{name}", data)

    async def apply(self, puts: Sequence[Draft], deletes: Sequence[User], who: Author) -> tuple[Shown, ...]:
        """Many changes, all or none, whatever versions stand there; documents that are equal make no new version."""
        return await self.apply_chosen(lambda _view: (puts, deletes), who)

    async def apply_chosen(self, choose: Choose, who: Author) -> tuple[Shown, ...]:
        """``apply`` of what is chosen in the writer's turn, by the registry as nobody else can change it meanwhile."""
        async with self._writing(who) as (writing, view):
            puts, deletes = choose(view)
            reads = [read_draft(view, draft.kind, draft.document, draft.id, self._guard) for draft in puts]
            _refuse_twins([*(read.name for read in reads), *deletes])
            moved = [read for read in reads if read.stored is None or read.stored.document != read.document]
            gone = [name for name in dict.fromkeys(deletes) if name in view.entries]
            stored = await self._put(writing, view, moved, who, gone=gone)
            for name in gone:
                await writing.delete(Delete(name.kind, name.id))
            number = writing.revision if moved or gone else view.revision
        view = await self._live.reach(number)
        names = (*(User(entry.kind, entry.id) for entry in stored), *gone)
        data = {"who": who.name, "revision": number}
        await self._events.tell_all(("entry.applied", f"{name.kind}/{name.id}", data) for name in names)
        return tuple(show(view, view.entries[read.name]) for read in reads if read.name in view.entries)

    async def history(self, kind: Kind, name: str, *, cursor: str | None = None, limit: int = 50) -> Page[PastChange]:
        """The changes of an entry, newest first; also of one that is deleted."""
        check_limit(limit)
        after = read_number(cursor) or 0
        if not is_plain(name):
            raise unknown(kind, name)
        found = await self._registry.changes(kind, name, after=after, limit=limit + 1, newest_first=True)
        if not found and not after:
            raise unknown(kind, name)
        return self._changes_page(found, limit)

    async def changes(self, *, cursor: str | None = None, limit: int = 50) -> Page[PastChange]:
        """The changes of all entries, newest first."""
        check_limit(limit)
        after = read_number(cursor) or 0
        return self._changes_page(await self._registry.changes(after=after, limit=limit + 1, newest_first=True), limit)

    def _changes_page(self, found: Sequence[StoredChange], limit: int) -> Page[PastChange]:
        view = self._live.view
        following = str(found[limit - 1].seq) if len(found) > limit else None
        return Page(tuple(_show_change(view, change) for change in found[:limit]), following)

    async def rollback(self, kind: Kind, name: str, version: int, if_match: str | None, who: Author) -> Shown:
        """Put back the document of an earlier version, as a new version; it is checked like any other."""
        async with self._writing(who) as (writing, view):
            expected_version(view.entry(kind, name), if_match)
            past = await self._registry.past(kind, name, version) if 0 < version < _VERSIONS else None
            if past is None:
                hint = "see its history"
                raise NotFound(f"it has no document of version {version}", where=f"{kind}/{name}", hint=hint)
            draft = read_draft(view, kind, past.document, name, self._guard)
            read = replace(draft, kept=past.sealed, is_restored=True)
            stored = await self._put(writing, view, [read], who, restores=version)
        return await self._told("rollback", stored, who, writing.revision)

    async def approve(self, name: str, if_match: str | None, who: Author, kind: Kind = "mcp-servers") -> Shown:
        """Allow the command that stands in this version of a stdio server, or of an agent's executor, to be started.

        Forbidden unless an admin does it; PreconditionRequired and VersionConflict as in ``replace``: what is approved
        is what was looked at.
        """
        if not who.is_admin:
            raise Forbidden("only an admin approves a command", where=f"{kind}/{name}")
        async with self._writing(who) as (writing, view):
            entry = view.entry(kind, name)
            expected_version(entry, if_match)
            value = view.value(User(kind, name))
            digest = None if value is None else command_digest(value)
            if digest is None:
                what = "a remote server" if kind == "mcp-servers" else "what executes its runs"
                raise InvalidServer(f"{what} starts no program of its own", where=f"{kind}/{name}")
            stored = [await writing.approve(kind, name, digest)]
        return await self._told("approve", stored, who, writing.revision)

    async def users(self, kind: Kind, name: str, *, cursor: str | None = None, limit: int = 100) -> Page[User]:
        """The entries that refer to this one, by kind and id."""
        check_limit(limit)
        view = self._live.view
        view.entry(kind, name)
        users = sorted(view.users_of(User(kind, name)), key=_user_place)
        found = [user for user in users if cursor is None or _user_place(user) > cursor][: limit + 1]
        following = _user_place(found[limit - 1]) if len(found) > limit else None
        return Page(tuple(found[:limit]), following)

    @asynccontextmanager
    async def _writing(self, who: Author) -> AsyncGenerator[tuple[Writing, View]]:
        """A writer's turn, and the registry as it finds it; the storage bounds the wait for it."""
        async with self._registry.changing(who.name) as writing:
            yield writing, await self._live.reach(writing.revision - 1)

    async def _put(
        self,
        writing: Writing,
        view: View,
        reads: Sequence[Read],
        who: Author,
        *,
        gone: Iterable[User] = (),
        restores: int | None = None,
    ) -> tuple[Entry, ...]:
        """Store what was read, if the catalog as a whole still holds with it; what must be sealed by it comes last."""
        for read in reads:
            need_admin(read.stored, read.value, who)
        for name in gone:
            need_admin(view.entries[name], None, who)
        changes = [*(read.as_change() for read in reads), *(Change(name) for name in gone)]
        after = view.changed(changes, writing.revision)
        _check(view, after, [change.name for change in changes])
        check_kept(view, after, reads, who)
        puts = [_as_put(read, after, restores) for read in reads]
        stored = await writing.put_all((*puts, *resealed(after, reads)))
        for name in newly_judged(after, reads):
            await writing.seal_past(
                name.kind, name.id, lambda document, kind=name.kind: sensitive_pointers(kind, document, after.catalog)
            )
        return stored

    async def _told(self, action: str, stored: Sequence[Entry], who: Author, revision: int) -> Shown:
        """The first that was stored, once everybody in this process sees it; whoever listens is told of all."""
        view = await self._live.reach(revision)
        kinds = (f"entry.{_ACTIONS[action]}", *("entry.updated" for _ in stored[1:]))
        await self._events.tell_all(
            (kind, f"{entry.kind}/{entry.id}", {"version": entry.version, "who": who.name, "revision": revision})
            for kind, entry in zip(kinds, stored, strict=True)
        )
        return show(view, stored[0])


def _as_put(read: Read, after: View, restores: int | None) -> Put:
    sealed = sensitive_pointers(read.name.kind, read.document, after.catalog)
    expected = 0 if read.stored is None else read.stored.version
    return Put(read.name.kind, read.name.id, read.document, sealed, expected, restores)


def show(view: View, entry: Entry) -> Shown:
    """The entry as it may be seen."""
    name = User(entry.kind, entry.id)
    pointers = hidden_pointers(entry, view.catalog)
    value = view.value(name)
    digest = None if value is None else command_digest(value)
    return Shown(
        kind=entry.kind,
        id=entry.id,
        document=masked(entry.document, pointers),
        version=entry.version,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        updated_by=entry.updated_by,
        approved=None if digest is None else digest == entry.approved,
        users=len(view.users.get(name, ())),
    )


def _user_place(user: User) -> str:
    """Where a user stands in a list; also the cursor of what comes after it. No kind has a dot in it."""
    return f"{user.kind}.{user.id}"


def _refuse_twins(names: Sequence[User]) -> None:
    """Refuse two changes of one entry at once: nobody could say which one is meant."""
    seen: set[User] = set()
    for name in names:
        if name in seen:
            raise Invalid("it is changed twice at once", where=f"{name.kind}/{name.id}", hint="give it once")
        seen.add(name)


def _check(before: View, after: View, names: Sequence[User]) -> None:
    """Refuse a change that breaks what held; what was broken before does not stand in anybody's way."""
    affected = tuple(dict.fromkeys((*before.affected_by(names), *after.affected_by(names))))
    problems = problems_of(after.catalog, affected)
    if problems:
        old = problems_of(before.catalog, affected)
        raise_all([problem for key, problem in problems.items() if key not in old], "registry")


def _show_change(view: View, change: StoredChange) -> PastChange:
    def shown(document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if document is None:
            return None
        return masked(mask_sealed(document), sensitive_pointers(change.kind, document, view.catalog))

    head = (change.seq, change.revision, change.at, change.who, change.action, change.kind, change.id, change.version)
    return PastChange(*head, before=shown(change.before), after=shown(change.after))
