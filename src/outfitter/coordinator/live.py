"""The catalog of the newest good revision, in memory, kept up with the registry whoever changes it.

Only what changed is read and parsed again. When the database is away, or a newer program has written something that
this one cannot read, the last good catalog stays. The owner runs ``run``; it ends when it is cancelled or when the
database is closed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

import anyio

from outfitter.catalog import Catalog
from outfitter.coordinator.view import Change, View, read_change
from outfitter.errors import OutfitterError, StorageUnavailable
from outfitter.storage import Entry, Kind, Registry, User

Listener = Callable[[Catalog, int], None]
_MOST_CHANGES: Final = 200
_TRIES: Final = 5
_PAUSES: Final = (0.1, 0.2, 0.5, 1.0)
_log = logging.getLogger("outfitter.coordinator")


class _Unreadable(StorageUnavailable):
    """The registry holds something that this program does not understand."""


class LiveCatalog:
    """Follows the registry; keeps the last good catalog when the database is away."""

    def __init__(self, registry: Registry) -> None:
        """Begin with an empty catalog; ``load`` reads the registry."""
        self._registry = registry
        self._view = View()
        self._seq = 0
        self._fault: OutfitterError | None = None
        self._listeners: dict[object, Listener] = {}
        self._turn = anyio.Lock()

    @property
    def view(self) -> View:
        """Everything about the revision at once, consistent in itself."""
        return self._view

    @property
    def catalog(self) -> Catalog:
        """The parsed catalog."""
        return self._view.catalog

    @property
    def revision(self) -> int:
        """The revision that the catalog is of."""
        return self._view.revision

    @property
    def fault(self) -> OutfitterError | None:
        """Why the newest revision is not taken, or could not be read; None when all is well."""
        return self._fault

    @property
    def entries(self) -> Mapping[User, Entry]:
        """The stored entries by kind and id: ``entries[User("agents", "tester")]``. Literals are open here."""
        return self._view.entries

    def users_of(self, kind: Kind, name: str) -> tuple[User, ...]:
        """The entries that refer to this one."""
        return self._view.users_of(User(kind, name))

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener(catalog, revision)`` after every change; what is returned takes it away again."""
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    async def load(self) -> None:
        """Read the whole registry."""
        async with self._turn:
            await self._load()

    async def run(self) -> None:
        """Follow the registry until cancelled; what cannot be read now is tried again."""
        async for revision in self._registry.follow():
            tries = 0
            while not await self._try_to_reach(revision):
                await anyio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
                tries += 1

    async def reach(self, revision: int) -> View:
        """The view once it is at least of this revision: who has written sees what was written."""
        if self._view.revision < revision:
            async with self._turn:
                if self._view.revision < revision:
                    await self._catch_up()
        return self._view

    async def newest(self) -> View:
        """The view of the revision that the database has now."""
        return await self.reach(await self._registry.revision())

    @staticmethod
    def _read(name: User, entry: Entry | None) -> Change:
        try:
            return read_change(name, entry)
        except OutfitterError as error:
            where, hint = f"{name.kind}/{name.id}", "a newer program has written it: update this one"
            raise _Unreadable(f"it cannot be read here: [{error.code}]", where=where, hint=hint) from error

    async def _try_to_reach(self, revision: int) -> bool:
        """Whether there is nothing more to do for this revision."""
        try:
            # The drivers leave threads behind when a read is cut off, and a read is short or ends by its own limit.
            with anyio.CancelScope(shield=True):
                await self.reach(revision)
        except _Unreadable as error:
            self._blame(error)  # reading it again would not help; another change may
        except StorageUnavailable as error:
            self._blame(error)
            return False
        return True

    def _blame(self, error: OutfitterError) -> None:
        if self._fault is None or self._fault.code != error.code:
            _log.warning("the registry cannot be followed, revision %s stays: [%s]", self.revision, error.code)
        self._fault = error

    async def _catch_up(self) -> None:
        for _ in range(_TRIES):
            changes = await self._registry.changes(after=self._seq, limit=_MOST_CHANGES)
            if not changes or len(changes) == _MOST_CHANGES:
                break
            names = dict.fromkeys(User(change.kind, change.id) for change in changes)
            read = [self._read(name, await self._registry.entry(name.kind, name.id)) for name in names]
            if await self._registry.revision() == changes[-1].revision:
                self._take(self._view.changed(read, changes[-1].revision), changes[-1].seq)
                return
        await self._load()

    async def _load(self) -> None:
        newest = await self._registry.changes(limit=1, newest_first=True)
        revision, entries = await self._registry.state()
        read: list[Change] = [self._read(User(entry.kind, entry.id), entry) for entry in entries]
        self._take(View().changed(read, revision), newest[0].seq if newest else 0)

    def _take(self, view: View, seq: int) -> None:
        self._view, self._seq, self._fault = view, seq, None
        for listener in tuple(self._listeners.values()):
            listener(view.catalog, view.revision)
