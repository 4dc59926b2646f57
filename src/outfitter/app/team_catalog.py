"""A team where there is neither a ``.squad`` folder nor a registry: the agents of the catalog folder.

Nobody executes runs there and nobody notes who changed what, so history, backlog and decisions are empty and say why.
Calls are counted where a gateway has recorded some. Neighbour: ``team_registry``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.to_thread

from outfitter.app.settings import Settings
from outfitter.app.team_calls import CallBook
from outfitter.catalog import Agent
from outfitter.errors import OutfitterError, UnknownAgent
from outfitter.squad import AgentStatus, Backlog, Decision, Found, HistoryEntry, Member, Metrics, Told
from outfitter.storage import CatalogFolder

_LOOK_SECONDS = 1.0
_NO_RUNS = "there is no registry here, so no runs are kept ('outfitter up' makes one)"
_NO_CHANGES = "there is no registry here, so nobody noted who changed what ('outfitter up' makes one)"


@dataclass(frozen=True, slots=True)
class CatalogTeam:
    """The agents of a catalog folder as a team."""

    settings: Settings
    calls: CallBook
    look_seconds: float = _LOOK_SECONDS
    _read: dict[str, Told[Mapping[str, Agent]]] = field(default_factory=dict[str, Told[Mapping[str, Agent]]])

    @property
    def name(self) -> str:
        """The folder's own name, or that of what it is in."""
        folder = self.settings.catalog.absolute()
        return folder.parent.name or folder.name

    async def roster(self) -> Told[tuple[Member, ...]]:
        """Every agent of the folder."""
        told = await self._agents()
        return Told(members_of(told.value.values()), told.notes)

    async def decisions(self, limit: int | None = None) -> Told[tuple[Decision, ...]]:
        """None: nobody noted any."""
        del limit
        return Told((), (_NO_CHANGES,))

    async def search(self, query: str, limit: int = 10) -> Told[tuple[Found, ...]]:
        """None: nobody noted any."""
        del query, limit
        return Told((), (_NO_CHANGES,))

    async def backlog(self) -> Told[Backlog]:
        """Nothing: there are no runs."""
        return Told(Backlog("catalog"), (_NO_RUNS,))

    async def status(self, agent: str) -> Told[AgentStatus]:
        """That there is such an agent; what it does is not known here."""
        await self._need(agent)
        return Told(AgentStatus(agent, "unknown", source="catalog"), (_NO_RUNS,))

    async def history(self, agent: str, limit: int = 100) -> Told[tuple[HistoryEntry, ...]]:
        """Nothing: there are no runs."""
        del limit
        await self._need(agent)
        return Told((), (_NO_RUNS,))

    async def metrics(self) -> Told[Metrics]:
        """The recorded calls."""
        used = await self.calls.usage()
        return Told(Metrics(tuple(used[name] for name in sorted(used)), self.calls.since, "recorded calls"))

    async def changes(self) -> AsyncGenerator[Sequence[str]]:
        """What may have changed, whenever a file of the folder has."""
        seen = await anyio.to_thread.run_sync(_stamp, self.settings)
        while True:
            await anyio.sleep(self.look_seconds)
            now = await anyio.to_thread.run_sync(_stamp, self.settings)
            if now != seen:
                seen = now
                yield ("squad://roster", "squad://agents")

    async def _agents(self) -> Told[Mapping[str, Agent]]:
        stamp = await anyio.to_thread.run_sync(_stamp, self.settings)
        if stamp not in self._read:
            read = await anyio.to_thread.run_sync(_load, self.settings)
            self._read.clear()
            self._read[stamp] = read
        return self._read[stamp]

    async def _need(self, agent: str) -> None:
        if agent not in (await self._agents()).value:
            raise UnknownAgent(f"there is no agent {ascii(agent)[:80]} in the catalog")


def members_of(agents: Iterable[Agent], active: frozenset[str] | None = None) -> tuple[Member, ...]:
    """Agents as members; ``active`` are those who work now, None when nobody knows."""
    return tuple(
        Member(
            agent.name,
            agent.name,
            agent.role,
            "" if active is None else "active" if agent.name in active else "idle",
            "coordinator" if agent.role.casefold() == "coordinator" else "member",
            expertise=agent.description,
            model=agent.executor.model or "" if agent.executor is not None else "",
        )
        for agent in sorted(agents, key=lambda agent: agent.name)
    )


def _load(settings: Settings) -> Told[Mapping[str, Agent]]:
    try:
        return Told(CatalogFolder(settings.catalog).load().agents)
    except OutfitterError as error:
        return Told({}, (f"the catalog cannot be read: {error}",))


def _stamp(settings: Settings) -> str:
    """Something that is another text when a file of the folder is another."""
    found: list[str] = []
    try:
        for path in sorted(settings.catalog.rglob("*")):
            known = path.stat()
            found.append(f"{path} {known.st_mtime_ns} {known.st_size} {known.st_ino}")
    except OSError:
        found.append("away")
    return "\n".join(found)
