"""Whose state is served? A ``.squad`` folder where there is one, else Outfitter's own: its registry, else its catalog.

Neighbours: ``outfitter.squad`` reads the folder and serves; ``team_registry`` and ``team_catalog`` are the own state.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from outfitter.app.registry_place import KEYS, can_have_registry, has_registry, registry_url
from outfitter.app.settings import Settings
from outfitter.app.team_backlog import asking_tracker
from outfitter.app.team_calls import CallBook
from outfitter.app.team_catalog import CatalogTeam
from outfitter.basics import the_one_in
from outfitter.errors import NotFound
from outfitter.squad import SquadFolder, TeamState, find_squad

_FOLDERS = (".squad", ".ai-team")


@dataclass(frozen=True, slots=True)
class OpenTeam:
    """A team's state, and what it is told of where it is read."""

    state: TeamState
    told: str


@asynccontextmanager
async def open_team(
    settings: Settings, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> AsyncGenerator[OpenTeam]:
    """The team of a folder, NotFound when it has none; without one, that of here, or else Outfitter's own state.

    With an environment the backlog is asked of the tracker's server of the squad file, if there is one.
    """
    found = find_team(folder or Path())
    if found is not None:
        team = OpenTeam(found, f"The team of the folder {found.place.root}.")
        if environment is None:
            yield team
            return
        async with asking_tracker(found, settings, environment):
            yield team
        return
    if folder is not None:
        hint = "name a repository with a .squad folder, or leave --dir out to serve Outfitter's own state"
        raise NotFound("there is no .squad folder here or above", where=str(folder), hint=hint)
    with closing(CallBook(settings)) as calls:
        async with _open_own(settings, calls) as team:
            yield team


def find_team(folder: Path) -> SquadFolder | None:
    """The team of a ``.squad`` folder, or of the repository that a folder is in; None without one."""
    if folder.absolute().name in _FOLDERS and folder.is_dir():
        return SquadFolder.at(folder)
    place = find_squad(folder)
    return None if place is None else SquadFolder(place)


@asynccontextmanager
async def _open_own(settings: Settings, calls: CallBook) -> AsyncGenerator[OpenTeam]:
    if not (has_registry(settings) and can_have_registry()):
        told = f"Outfitter's own state, by the catalog folder {settings.catalog}; there is no .squad folder here."
        yield OpenTeam(CatalogTeam(settings, calls), told)
        return
    import anyio

    from outfitter.app.team_registry import RegistryTeam
    from outfitter.coordinator import LiveCatalog
    from outfitter.storage import KeyRing, open_database

    try:
        async with (
            open_database(registry_url(settings), KeyRing(settings.state / KEYS)) as database,
            anyio.create_task_group() as group,
        ):
            live = LiveCatalog(database.registry)
            await live.load()
            group.start_soon(live.run)
            told = f"Outfitter's own state, by the registry {database.shown}; there is no .squad folder here."
            yield OpenTeam(RegistryTeam("outfitter", database, live, calls), told)
            group.cancel_scope.cancel()
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None
