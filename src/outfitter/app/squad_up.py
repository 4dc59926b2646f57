"""The gateway of a squad file: one endpoint for each of its agents, and no database.

Every agent also gets the team's own server, ``squad``, which runs in this process on a loopback port: a header says
which agent asks, and no run and no parent can say another. A changed file is taken over when it is right; a bad one
changes nothing and is told once. Neighbours: ``serving`` runs the gateway, ``squad_files`` reads the file.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from outfitter.app.first_start import load_http, token_book
from outfitter.app.following import follow
from outfitter.app.live import arm_plan
from outfitter.app.news import News
from outfitter.app.options import Started
from outfitter.app.settings import Settings
from outfitter.app.squad_files import SquadHome
from outfitter.catalog import Agent, Catalog, HeaderSchema, MCPServer, ServerEntry, ServerRef
from outfitter.errors import OutfitterError, Unavailable
from outfitter.resolution import resolve

if TYPE_CHECKING:
    from outfitter.gateway import Address, Desk, TokenSource
    from outfitter.squad import BacklogSource, SquadFolder, TeamPlace

_log = logging.getLogger(__name__)
TEAM_SERVER = "squad"
_AGENT = "X-Outfitter-Agent"


@dataclass(slots=True)
class SquadSource:
    """A squad file, and the tokens of a file: no registry, no API."""

    settings: Settings
    news: News
    tokens: TokenSource
    home: SquadHome
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What the server that is asked for the backlog is armed with."""
    runs: None = None
    _catalog: Catalog = field(default_factory=Catalog)
    _opened: anyio.Event = field(default_factory=anyio.Event)

    def first(self) -> None:
        """Nothing yet, but the error of a bad file: the team's server must be up before anybody is let in."""
        self._catalog = self.home.load()

    async def run(self, desk: Desk, swap: Callable[[Catalog], None]) -> None:
        """Have the team's server up, and follow the file."""
        async with serving_own_team(self.home) as team:

            async def take(catalog: Catalog, _seen: str) -> None:
                self._catalog = catalog
                if team is not None:
                    team.state.backlog_source = await self._backlog(team, desk)
                swap(with_team(catalog, None if team is None else team.place))

            seen = await anyio.to_thread.run_sync(self.home.state)
            await take(self._catalog, "")
            self._opened.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, load_http)
                tasks.start_soon(follow, self.home.state, self.home.load, take, self.news, seen)
                await desk.closing.wait()
                tasks.cancel_scope.cancel()

    async def _backlog(self, team: OwnTeam, desk: Desk) -> BacklogSource | None:
        """Who knows the team's issues: the tracker's server of the file, asked on the gateway's own connection."""
        from outfitter.squad import McpBacklog, find_tracker

        found = await anyio.to_thread.run_sync(find_tracker, team.state.place, self._catalog.servers)
        if found is None:
            return None
        asking = Agent(TEAM_SERVER, servers={found.server: ServerRef(found.server)})
        try:
            plan = resolve(asking, self._catalog)
            outfit = await anyio.to_thread.run_sync(arm_plan, plan, self.environment, self.settings)
            armed = outfit.servers[found.server]
            if isinstance(armed, OutfitterError):
                raise armed
        except OutfitterError as error:
            _log.warning("the backlog is read from files: server '%s' cannot be asked: %s", found.server, error)
            return None
        return McpBacklog(desk.exchange.pool.connect(armed), found.tracker, found.target)

    async def wait(self) -> None:
        """Return when there is a catalog to serve."""
        await self._opened.wait()

    def told(self, address: Address) -> Started:
        """The agents of the file."""
        return squad_told(self.settings, self._catalog, address)

    def ready(self) -> tuple[int, str]:
        """Whether the team's server is up."""
        return (200, "ready") if self._opened.is_set() else (503, "the team's server is not up yet")

    def aside(self, scope: Mapping[str, Any], pages: frozenset[str]) -> None:
        """Nobody else is served."""


def squad_told(settings: Settings, catalog: Catalog, address: Address) -> Started:
    """What is told of a gateway that serves a squad file."""
    return Started(address, tuple(sorted(catalog.agents)), has_tokens=bool(token_book(settings).records()))


@dataclass(frozen=True, slots=True)
class OwnTeam:
    """The team's state, and where its server is."""

    state: SquadFolder
    place: TeamPlace


@asynccontextmanager
async def serving_own_team(home: SquadHome) -> AsyncGenerator[OwnTeam | None]:
    """The team's server on a loopback port; None, with a warning, where what it needs is not installed."""
    try:
        from outfitter.squad import SquadFolder, serving_team
    except Unavailable as error:
        _log.warning("agents go without the team's own server: %s", error)
        yield None
        return
    state = SquadFolder.at(home.folder)
    async with serving_team(state, told=str(home.folder)) as place:
        yield OwnTeam(state, place)


def with_team(catalog: Catalog, place: TeamPlace | None) -> Catalog:
    """The catalog with the team's server for every agent; a server of that name in the file stays what it is."""
    if place is None:
        return catalog
    if TEAM_SERVER in catalog.servers:
        _log.warning("the squad file has a server '%s' of its own; the team's server is not added", TEAM_SERVER)
        return catalog
    entry = ServerEntry(
        MCPServer.http(TEAM_SERVER, place.url),
        title="The team's own state",
        header_schema={_AGENT: HeaderSchema(required=True, locked=True)},
        default_headers={"Authorization": place.authorization},
        source="outfitter up --squad",
    )
    agents = {name: _with_team(agent) for name, agent in catalog.agents.items()}
    return Catalog({**catalog.servers, TEAM_SERVER: entry}, catalog.capabilities, agents)


def _with_team(agent: Agent) -> Agent:
    use = ServerRef(TEAM_SERVER, headers={_AGENT: agent.name})
    return replace(agent, servers={**agent.servers, TEAM_SERVER: use})
