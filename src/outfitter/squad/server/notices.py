"""Who is told when the team's state changes: listens of the modern era, visits and subscriptions of the handshake era.

Each is kept until it ends or the caps are reached: then the oldest of the same viewer is closed, or else the oldest of
all. What may be read is asked again at each notice. A client that does not read is let go. Neighbour: ``server``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from outfitter.errors import OutfitterError
from outfitter.squad.server.addresses import Address, OfTeam, read_address
from outfitter.squad.server.library import may_read
from outfitter.squad.server.viewers import Viewer
from outfitter.squad.team import Member, TeamState

_log = logging.getLogger("outfitter.squad")
_PAUSE = 5.0
_LISTS = frozenset({OfTeam("roster"), OfTeam("agents")})
_Who: TypeAlias = tuple[str, str, str, str]
VisitKey: TypeAlias = tuple[Viewer, str | None]
"""Whose visit, and its id; None on stdin and stdout, where there is one."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How much is kept for those who wait."""

    listens: int = 1024
    listens_of_one: int = 64
    visits: int = 1024
    subscriptions: int = 1000
    """URIs of one visit."""
    waiting: int = 256
    """Notices that wait for one listen."""
    seconds: float = 10.0
    """For how long a client may leave a notice unread."""


@dataclass(frozen=True, slots=True, eq=False)
class Listen:
    """One open listen: whose, for what, and where its notices go. Closing the way ends it."""

    viewer: Viewer
    uris: Mapping[Address, str]
    hears_lists: bool
    way: MemoryObjectSendStream[ServerEvent]

    def tell(self, events: Iterable[ServerEvent]) -> None:
        """Put notices on the way; one who lets too many wait is closed."""
        try:
            for event in events:
                self.way.send_nowait(event)
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.way.close()


@dataclass(frozen=True, slots=True, eq=False)
class Visit:
    """A client of the handshake era: how it is told, and what it subscribed to, oldest first."""

    told: ServerSession
    uris: dict[Address, str] = field(default_factory=dict[Address, str])


@dataclass(frozen=True, slots=True)
class Notices:
    """Everybody who is told. ``run`` belongs to a task of whoever serves."""

    state: TeamState
    caps: Caps = field(default_factory=Caps)
    listens: dict[Listen, None] = field(default_factory=dict[Listen, None])
    visits: dict[VisitKey, Visit] = field(default_factory=dict[VisitKey, Visit])
    _known: list[frozenset[_Who]] = field(default_factory=list[frozenset[_Who]])
    """Of whom the lists were when it was last looked; nothing before that."""

    async def run(self) -> None:
        """Tell of changes until it is cancelled."""
        while True:
            try:
                self._has_moved((await self.state.roster()).value)
                async with aclosing(self.state.changes()) as changes:
                    async for uris in changes:
                        await self.tell(uris)
            except Exception:  # noqa: BLE001 - a watch that fails must not end the server; the log says so
                _log.exception("the team's changes cannot be followed; it is tried again")
            await anyio.sleep(_PAUSE)

    async def tell(self, uris: Iterable[str]) -> None:
        """Tell those who want to know that something at these URIs may have changed."""
        changed = frozenset(_addresses(uris))
        if not changed:
            return
        members = (await self.state.roster()).value
        has_moved = bool(changed & _LISTS) and self._has_moved(members)
        for listen in list(self.listens):
            wanted = _wanted(listen.viewer, listen.uris, changed, members)
            lists = [ResourcesListChanged()] if listen.hears_lists and has_moved else []
            listen.tell([*lists, *(ResourceUpdated(uri) for uri in wanted)])
        async with anyio.create_task_group() as group:
            for key, visit in list(self.visits.items()):
                wanted = _wanted(key[0], visit.uris, changed, members)
                group.start_soon(self._tell_visit, key, visit, wanted, has_moved)

    def enter(self, listen: Listen) -> None:
        """Keep a listen; over the caps the oldest is closed."""
        own = [other for other in self.listens if other.viewer == listen.viewer]
        if len(own) >= self.caps.listens_of_one:
            self.leave(own[0])
        elif len(self.listens) >= self.caps.listens:
            self.leave(next(iter(self.listens)))
        self.listens[listen] = None

    def leave(self, listen: Listen) -> None:
        """Forget a listen and end it."""
        self.listens.pop(listen, None)
        listen.way.close()

    def arrive(self, key: VisitKey, told: ServerSession) -> Visit:
        """Keep a visit; over the cap the oldest is forgotten."""
        visit = self.visits.get(key)
        if visit is None:
            if len(self.visits) >= self.caps.visits:
                self.visits.pop(next(iter(self.visits)))
            visit = self.visits[key] = Visit(told)
        return visit

    def subscribe(self, key: VisitKey, told: ServerSession, address: Address, uri: str) -> None:
        """Tell a visit of an address from now on; over the cap the oldest of its subscriptions ends."""
        uris = self.arrive(key, told).uris
        uris.pop(address, None)
        if len(uris) >= self.caps.subscriptions:
            uris.pop(next(iter(uris)))
        uris[address] = uri

    def unsubscribe(self, key: VisitKey, address: Address) -> None:
        """Tell a visit of this no more."""
        if key in self.visits:
            self.visits[key].uris.pop(address, None)

    def depart(self, key: VisitKey) -> None:
        """Forget a visit that has ended."""
        self.visits.pop(key, None)

    def _has_moved(self, members: Iterable[Member]) -> bool:
        """Whether a list may be another than when it was last looked: who is there, and who may read what."""
        now = frozenset((member.id, member.name, member.role, member.kind) for member in members)
        before = self._known[:]
        self._known[:] = [now]
        return before != [now]

    async def _tell_visit(self, key: VisitKey, visit: Visit, uris: list[str], lists: bool) -> None:
        with anyio.move_on_after(self.caps.seconds) as scope:
            if lists:
                await visit.told.send_resource_list_changed()
            for uri in uris:
                await visit.told.send_resource_updated(uri)
        if scope.cancelled_caught and self.visits.get(key) is visit:
            self.depart(key)


def _wanted(
    viewer: Viewer, uris: Mapping[Address, str], changed: frozenset[Address], members: tuple[Member, ...]
) -> list[str]:
    """The URIs, as they were asked for, that changed and that the viewer may still read."""
    return [uris[address] for address in changed if address in uris and may_read(viewer, address, members)]


def _addresses(uris: Iterable[str]) -> Iterator[Address]:
    """What the URIs of a state mean; names in them may be written without escapes."""
    for uri in uris:
        try:
            yield read_address(quote(uri, safe=":/%"))
        except OutfitterError:
            _log.debug("a change was told of what is no resource here")
