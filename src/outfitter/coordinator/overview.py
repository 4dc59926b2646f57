"""The registry at a glance, from memory: how many there are, which wait for somebody, what has which name.

Worked out when first asked for after a change, so that asking often costs nothing; whether a variable has a value is
looked up again after a while, as nobody tells when one is set. Not here: how servers do now (``/metrics``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import anyio
import anyio.lowlevel

from outfitter.coordinator.commands import command_digest
from outfitter.coordinator.listing import Listing, Wanted
from outfitter.coordinator.live import LiveCatalog
from outfitter.coordinator.starting import Fetch
from outfitter.coordinator.text_shelf import TextShelf
from outfitter.coordinator.view import View
from outfitter.errors import OutfitterError, Refused, UnresolvedPlaceholder
from outfitter.resolution import Variable, Want, resolve, server_wants
from outfitter.storage import KINDS, Kind, User

_MOST_NOTES = 50
_NAMED = 3
_BREATH = 20
"""After so many agents others have their turn."""
_VARIABLE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Note:
    """An entry that waits for somebody, and why. ``code`` is stable."""

    kind: Kind
    id: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Overview:
    """One revision at a glance; of the notes the first ones, ``waiting`` says how many there are."""

    counts: dict[Kind, int]
    notes: tuple[Note, ...]
    waiting: int


@dataclass(frozen=True, slots=True)
class Named:
    """Something with a name: an entry, or a tool that the entry of a server lists."""

    kind: Kind | Literal["tools"]
    name: str
    server: str = ""
    """Of a tool: whose it is."""


@dataclass(frozen=True, slots=True)
class _Tools:
    """Every tool with its server in order, and their names to search in."""

    tools: list[Named]
    names: TextShelf


@dataclass(slots=True)
class Overviews:
    """Answers from the newest revision."""

    _live: LiveCatalog
    _fetch: Fetch | None = None
    clock: Callable[[], float] = time.monotonic
    _revision: int = -1
    _looked: float = float("-inf")
    _kept: Overview | None = None
    _listing: Listing = field(default_factory=Listing, repr=False)
    _tools: tuple[int, _Tools] | None = field(default=None, repr=False)
    _turn: anyio.Lock = field(default_factory=anyio.Lock, repr=False)

    async def get(self) -> Overview:
        """How it stands; at most some seconds old."""
        async with self._turn:
            view = self._live.view
            if self._kept is None or view.revision != self._revision or self.clock() - self._looked > _VARIABLE_SECONDS:
                self._kept = await self._look(view)
                self._revision, self._looked = view.revision, self.clock()
            return self._kept

    def find(self, text: str, limit: int) -> list[Named]:
        """The first of each kind: entries with a text in id, name or description, tools with it in their names."""
        view, wanted = self._live.view, Wanted(limit=limit, text=text or None)
        found = [Named(kind, entry.id) for kind in KINDS for entry in self._listing.page(view, kind, wanted)[0]]
        return [*found, *self._find_tools(text.casefold(), limit)]

    def _find_tools(self, text: str, limit: int) -> list[Named]:
        """Those whose name begins with it come first."""
        shelf = self._shelf()
        found = [shelf.tools[place] for place in shelf.names.find(text)] if text else shelf.tools[:limit]
        return sorted(found, key=lambda one: not one.name.casefold().startswith(text))[:limit]

    def _shelf(self) -> _Tools:
        view = self._live.view
        if self._tools is None or self._tools[0] != view.revision:
            self._tools = view.revision, _shelve(view)
        return self._tools[1]

    async def _look(self, view: View) -> Overview:
        counts = dict.fromkeys(KINDS, 0)
        for name in view.entries:
            counts[name.kind] += 1
        notes = [*_unapproved(view), *await self._unresolved(view), *_unused(view)]
        return Overview(counts, tuple(notes[:_MOST_NOTES]), len(notes))

    async def _unresolved(self, view: View) -> list[Note]:
        """Agents that cannot be resolved, and those that want a variable which has no value here."""
        notes: list[Note] = []
        wants: list[tuple[str, Want]] = []
        for number, agent in enumerate(sorted(view.catalog.agents)):
            if number % _BREATH == 0:
                await anyio.lowlevel.checkpoint()
            try:
                plan = resolve(agent, view.catalog)
                wants += [(agent, want) for server in plan.servers.values() for want in server_wants(server)]
            except OutfitterError as error:
                first = error.problems[0] if isinstance(error, Refused) and error.problems else error
                notes.append(Note("agents", agent, first.code, first.message))
        variables = [(agent, want) for agent, want in wants if isinstance(want.need, Variable)]
        return [*notes, *await self._missing(variables)]

    async def _missing(self, wants: Sequence[tuple[str, Want]]) -> list[Note]:
        if self._fetch is None or not wants:
            return []
        try:
            supply = await self._fetch([want for _, want in wants])
        except OutfitterError:
            return []  # whoever starts a run is told
        users: dict[str, list[str]] = {}
        for agent, want in wants:
            if isinstance(want.need, Variable) and supply.find(want.need) is None:
                users.setdefault(want.need.name, []).append(agent)
        return [_unset(name, list(dict.fromkeys(agents))) for name, agents in users.items()]


def _unset(variable: str, agents: Sequence[str]) -> Note:
    more = f" and {len(agents) - _NAMED} more" if len(agents) > _NAMED else ""
    wanted = f"wanted by {', '.join(agents[:_NAMED])}{more}"
    return Note("agents", agents[0], UnresolvedPlaceholder.code, f"variable {variable} has no value here; {wanted}")


def _unapproved(view: View) -> Iterator[Note]:
    for name, entry in view.entries.items():
        value = view.value(name)
        digest = None if value is None else command_digest(value)
        if digest is not None and digest != entry.approved:
            what = "its program" if name.kind == "mcp-servers" else "its executor"
            yield Note(name.kind, name.id, "not_approved", f"{what} waits for approval")


def _unused(view: View) -> Iterator[Note]:
    for name in sorted(view.catalog.servers):
        if not view.users.get(User("mcp-servers", name)):
            yield Note("mcp-servers", name, "unused", "no agent uses it")


def _shelve(view: View) -> _Tools:
    tools = [
        Named("tools", tool, name)
        for name in sorted(view.catalog.servers)
        for tool in sorted(view.catalog.servers[name].known_tools or ())
    ]
    return _Tools(tools, TextShelf.of(one.name for one in tools))
