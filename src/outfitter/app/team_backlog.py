"""Who is asked for the backlog of a team that is served on its own: the tracker's server of its squad file, if any.

Nothing is connected or started before somebody reads the backlog. Where there is no such server, or it lacks something,
the files answer. Neighbour: ``squad_up`` does the same on the gateway's own connection.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio.to_thread

from outfitter.app.live import arm_plan, make_pool
from outfitter.app.settings import Settings
from outfitter.app.squad_files import SquadHome
from outfitter.catalog import Agent, ServerRef
from outfitter.errors import NotFound, OutfitterError
from outfitter.resolution import ArmedServer, resolve
from outfitter.squad import McpBacklog, SquadFolder, find_tracker

if TYPE_CHECKING:
    from outfitter.squad import TrackerServer

_log = logging.getLogger(__name__)


@asynccontextmanager
async def asking_tracker(team: SquadFolder, settings: Settings, environment: Mapping[str, str]) -> AsyncGenerator[None]:
    """Have the backlog asked of the tracker's server as long as the block lasts."""
    home = SquadHome(team.place.root)
    found = await anyio.to_thread.run_sync(_find, team, home, settings, environment)
    if found is None:
        yield
        return
    tracker, armed = found
    async with make_pool(home.settings(settings)) as pool:
        team.backlog_source = McpBacklog(pool.connect(armed), tracker.tracker, tracker.target)
        yield


def _find(
    team: SquadFolder, home: SquadHome, settings: Settings, environment: Mapping[str, str]
) -> tuple[TrackerServer, ArmedServer] | None:
    try:
        catalog = home.load()
        tracker = find_tracker(team.place, catalog.servers)
        if tracker is None:
            return None
        plan = resolve(Agent("squad", servers={tracker.server: ServerRef(tracker.server)}), catalog)
        armed = arm_plan(plan, home.environment(environment), home.settings(settings)).servers[tracker.server]
        if isinstance(armed, OutfitterError):
            raise armed
    except NotFound:
        return None  # no squad file
    except OutfitterError as error:
        _log.warning("the backlog is read from files: %s", error)
        return None
    return tracker, armed
