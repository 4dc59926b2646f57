"""The catalog folder while the gateway runs: it is looked at once a second, and whoever follows it hears of a change.

A bad folder changes nothing and is told once. In file mode a change goes to the gateway; with a registry it goes to the
registry, if nobody else has changed the entry there. What was taken over is remembered in ``applied.json``.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from outfitter.app.news import News
from outfitter.app.registry_place import registry_mark
from outfitter.app.settings import Settings
from outfitter.catalog import Catalog
from outfitter.errors import OutfitterError, StorageUnavailable
from outfitter.storage import CatalogFolder, write_private

if TYPE_CHECKING:
    from outfitter.coordinator import Files

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
Take = Callable[[Catalog, str], Awaitable[None]]
"""Takes over a catalog and the state that its folder was in."""


async def follow_folder(folder: CatalogFolder, take: Take, news: News, seen: str | None) -> None:
    """Have a changed folder taken over when it is whole and right; ``seen`` is the state that is in use."""
    await follow(partial(state_of, folder.path), folder.load, take, news, seen)


async def follow(
    look: Callable[[], str | None], load: Callable[[], Catalog], take: Take, news: News, seen: str | None
) -> None:
    """Have a changed catalog taken over when it is whole and right; ``seen`` is the state that is in use.

    When the database is away or busy, it is tried again until it is taken.
    """
    told = ""
    while True:
        await anyio.sleep(_LOOK_SECONDS)
        now = await anyio.to_thread.run_sync(look)
        if now is None or now == seen:
            continue
        try:
            await take(await anyio.to_thread.run_sync(load), now)
        except OutfitterError as error:
            seen = seen if isinstance(error, StorageUnavailable) else now
            if str(error) != told:
                _log.warning("the changed catalog is not used: %s", error)
            told = str(error) if seen != now else ""
            news.tell(str(error))
        else:
            seen, told = now, ""
            _log.warning("the changed catalog is in use")
            news.tell("")


def state_of(path: Path) -> str | None:
    """What stands for the files there are and their versions; None when it cannot be seen now."""
    found = hashlib.sha256()
    try:
        files = sorted(path.rglob("*"))
    except OSError:  # too many open files, for instance: looked at again in a moment
        return None
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        found.update(f"{file}\0{stat.st_mtime_ns}\0{stat.st_size}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


@dataclass(slots=True)
class Applied:
    """What was last taken over from the folder into the registry."""

    settings: Settings
    seen: str | None = None
    """The state of the folder then."""
    digests: Mapping[str, str] | None = None
    """What each entry was; None when nothing is known."""
    _drifted: frozenset[str] = frozenset()
    _path: Path = field(init=False)

    def __post_init__(self) -> None:
        """Read what is remembered of this folder and this registry."""
        self._path = self.settings.state / "applied.json"
        try:
            kept: dict[str, Any] = json.loads(self._path.read_bytes())
            if kept["of"] == self._mark():
                self.seen, self.digests = kept["seen"], kept["entries"]
        except (OSError, ValueError, KeyError, TypeError):
            return

    def is_due(self, seen: str | None, revision: int) -> bool:
        """Whether the folder in this state is to be taken over: an empty registry has nothing of it, whatever was."""
        return seen != self.seen or not revision

    async def take(self, files: Files, catalog: Catalog, seen: str | None) -> None:
        """Bring what has changed in the folder into the registry; name what others have changed there."""
        from outfitter.coordinator import Author

        found = await files.follow(catalog, self.digests, Author("folder", is_admin=True))
        if self.digests is None and not found.taken:
            count = len((await files.plan(catalog)).changes)
            if count:
                _log.warning("%d entries of a folder that the registry does not know are not taken over: "
                             "outfitter apply -f %s brings them", count, self.settings.catalog)  # fmt: skip
        drifted = frozenset(f"{name.kind}/{name.id}" for name in found.drifted)
        for name in sorted(drifted - self._drifted):
            _log.warning("%s was changed in the registry and in the folder; the registry's stays (drift)", name)
        self.seen, self.digests, self._drifted = seen, found.applied, drifted
        told = {"of": self._mark(), "seen": seen, "entries": dict(found.applied)}
        await anyio.to_thread.run_sync(write_private, self._path, json.dumps(told))

    def _mark(self) -> list[str]:
        return [registry_mark(self.settings), str(self.settings.catalog.resolve())]
