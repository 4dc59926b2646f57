"""What the squad server has for a viewer: which resources there are, what each says, which names complete.

What a viewer may not read is not here for them: not listed, not completed, not subscribed to, and answered like what
does not exist. Neighbours: ``addresses`` reads URIs, ``documents`` writes, ``server`` puts it on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from outfitter.errors import Invalid, NotFound
from outfitter.squad.server.addresses import (
    TEAM,
    Address,
    AgentKind,
    OfAgent,
    OfTeam,
    agent_uri,
    is_name,
    read_address,
    unknown,
)
from outfitter.squad.server.cursors import Cursors
from outfitter.squad.server.documents import Shelf, write_document
from outfitter.squad.server.viewers import Viewer, readable
from outfitter.squad.team import Member, TeamState

PAGE = 200
"""Resources in one page of a list."""
LATEST = 10
_MOST_COMPLETIONS = 100
_MOST_HISTORY = 1000
_SEARCH = "squad_decision_search finds the others."
_ABOUT: Mapping[str, str] = {
    "roster": "Everybody of the team: roles, status, expertise.",
    "decisions": "The team's decisions, newest first; pending ones are marked.",
    "latest": f"The newest {LATEST} decisions.",
    "backlog": "What is to be done, and where that was read.",
    "agents": "The agents, and the URIs of what can be read about each.",
    "metrics": "Tokens, cost, calls and time, by agent.",
    "status": "How an agent does, and what it did last.",
    "history": "What an agent has learned and done, newest first.",
}


@dataclass(frozen=True, slots=True)
class Title:
    """A resource as a list has it."""

    uri: str
    name: str
    about: str


@dataclass(frozen=True, slots=True)
class Library:
    """A team's state for those who ask."""

    state: TeamState
    cursors: Cursors = field(default_factory=Cursors)

    async def list(self, viewer: Viewer, cursor: str | None = None) -> tuple[list[Title], str | None]:
        """A page of what the viewer may read, and the cursor of the next one; NotFound for another's cursor."""
        place = self.cursors.read(viewer, cursor)
        titles = list(_titles(viewer, await self._members()))
        following = self.cursors.make(viewer, place + PAGE) if place + PAGE < len(titles) else None
        return titles[place : place + PAGE], following

    async def find(self, viewer: Viewer, uri: str) -> Address:
        """What the URI asks for, if it is there for this viewer; Invalid and NotFound as ``read_address``."""
        address = read_address(uri)
        if isinstance(address, OfAgent) and not may_read(viewer, address, await self._members()):
            raise unknown()
        return address

    async def find_all(self, viewer: Viewer, uris: Iterable[str]) -> dict[Address, str]:
        """What of these is there for the viewer, as it was asked for; the rest is left out, whatever the reason."""
        members, found = await self._members(), dict[Address, str]()
        for uri in uris:
            with suppress(Invalid, NotFound):
                address = read_address(uri)
                if may_read(viewer, address, members):
                    found[address] = uri
        return found

    async def read(self, viewer: Viewer, uri: str) -> str:
        """The document at a URI."""
        address = await self.find(viewer, uri)
        if isinstance(address, OfTeam):
            return await self._of_team(viewer, address)
        try:
            return await self._of_agent(address)
        except NotFound:
            raise unknown() from None

    async def complete(self, viewer: Viewer, kind: AgentKind, begun: str) -> tuple[list[str], int]:
        """The names that begin like this, as many as are told at once, and how many there are."""
        members = await self._members()
        allowed = readable(viewer, members) if kind == "history" else frozenset(member.id for member in members)
        begun = begun.casefold()
        found = sorted(name for name in allowed if is_name(name) and name.casefold().startswith(begun))
        return found[:_MOST_COMPLETIONS], len(found)

    async def _members(self) -> tuple[Member, ...]:
        return (await self.state.roster()).value

    async def _of_team(self, viewer: Viewer, address: OfTeam) -> str:
        writers: Mapping[str, Callable[[], Coroutine[Any, Any, str]]] = {
            "roster": self._roster,
            "decisions": lambda: self._decisions(None),
            "latest": lambda: self._decisions(LATEST),
            "backlog": self._backlog,
            "agents": lambda: self._agents(viewer),
            "metrics": self._metrics,
        }
        return await writers[address.kind]()

    async def _of_agent(self, address: OfAgent) -> str:
        name = address.agent
        if address.kind == "status":
            status = await self.state.status(name)
            return write_document(self.state.name, {"agent": status.value}, None, status.notes)
        history = await self.state.history(name, _MOST_HISTORY)
        shelf = Shelf("entries", history.value, "Older ones are left out.")
        return write_document(self.state.name, {"agent": name}, shelf, history.notes)

    async def _roster(self) -> str:
        told = await self.state.roster()
        return write_document(self.state.name, {}, Shelf("members", told.value), told.notes)

    async def _agents(self, viewer: Viewer) -> str:
        told = await self.state.roster()
        allowed = readable(viewer, told.value)
        items = [_signpost(member, has_history=member.id in allowed) for member in told.value]
        return write_document(self.state.name, {}, Shelf("agents", items), told.notes)

    async def _decisions(self, limit: int | None) -> str:
        told = await self.state.decisions(limit)
        return write_document(self.state.name, {}, Shelf("decisions", told.value, _SEARCH), told.notes)

    async def _backlog(self) -> str:
        told = await self.state.backlog()
        shelf = Shelf("items", told.value.items)
        return write_document(self.state.name, {"source": told.value.source}, shelf, told.notes)

    async def _metrics(self) -> str:
        told = await self.state.metrics()
        usage = told.value.usage
        names = ("tasks", "input_tokens", "output_tokens", "cost", "calls", "failed_calls", "seconds")
        total = {name: sum(getattr(used, name) for used in usage) for name in names}
        head = {"since": told.value.since, "source": told.value.source, "team_total": total}
        return write_document(self.state.name, head, Shelf("usage", usage), told.notes)


def may_read(viewer: Viewer, address: Address, members: tuple[Member, ...]) -> bool:
    """Whether this is there for the viewer, in a team of these members."""
    if isinstance(address, OfTeam):
        return True
    if address.kind == "history":
        return address.agent in readable(viewer, members)
    return any(member.id == address.agent for member in members)


def about(kind: str) -> str:
    """What a resource of this kind says."""
    return _ABOUT[kind]


def _titles(viewer: Viewer, members: tuple[Member, ...]) -> Iterator[Title]:
    for uri, kind in TEAM.items():
        yield Title(uri, kind, about(kind))
    allowed = readable(viewer, members)
    for name in sorted({member.id for member in members if is_name(member.id)}):
        yield Title(agent_uri("status", name), f"{name} status", about("status"))
        if name in allowed:
            yield Title(agent_uri("history", name), f"{name} history", about("history"))


def _signpost(member: Member, *, has_history: bool) -> dict[str, object]:
    shown: dict[str, object] = {name: asdict(member)[name] for name in ("id", "name", "role", "status", "kind")}
    shown["status_uri"] = agent_uri("status", member.id)
    return {**shown, "history_uri": agent_uri("history", member.id)} if has_history else shown
