"""What one endpoint shows: all servers of an agent under prefixed names, or one server under its own.

A view finds whom a name or address belongs to. It never parses a name: the map is made with the list. What is not in
the agent's lists does not exist here.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, cast

import anyio

from outfitter.calls import ToolFinder
from outfitter.catalog import SearchMode, ToolKey, ToolOverride, apply_override, build_name_map
from outfitter.errors import OutfitterError, UnknownAlias
from outfitter.gateway.governing import UNGOVERNED, Governing
from outfitter.gateway.kept import limit_of
from outfitter.gateway.last_seen import note_seen
from outfitter.gateway.lines import Exchange, Line
from outfitter.gateway.pins import held_back, said_by
from outfitter.gateway.seats import Seat
from outfitter.gateway.visitors import Visitor
from outfitter.policy import Held
from outfitter.resolution import PlannedServer, SeenServer, pin_key, seen_key
from outfitter.upstream import Message, loop_time

_NAMED = frozenset({"tools/list", "prompts/list"})
_NONE = -1
_RETRY_SECONDS = 2.0
_MOST_LISTINGS = 256
_Found: TypeAlias = "tuple[str, str, Message, str | None]"
"""An entry's alias, own name and content, and the name it is shown under where that is another one."""
_Waiting: TypeAlias = "Mapping[str, Mapping[str, Held]]"
"""What is held back, by alias and own name."""
_VARIABLE = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a list, and where it really is."""

    entry: Message
    """As its server says it: all agents share it."""
    alias: str
    name: str
    """The server's own name or address for it."""
    line: Line = field(repr=False)
    renamed: str | None = None
    """The name that the client sees, where it is another one."""
    override: ToolOverride | None = None
    """What the plan says otherwise about the tool."""
    is_cut: bool = False
    """Whether its results may be cut: then nothing is promised about their structure."""

    @property
    def shown(self) -> Message:
        """The entry as the client sees it."""
        entry = self.entry if self.override is None else apply_override(self.entry, self.override)
        if self.is_cut and "outputSchema" in entry:
            entry = {key: value for key, value in entry.items() if key != "outputSchema"}
        return entry if self.renamed is None else {**entry, "name": self.renamed}


@dataclass(frozen=True, slots=True)
class Listing:
    """A merged list: entries by the name or address that the client uses, in a stable order."""

    items: Mapping[str, Item]
    failures: Mapping[str, OutfitterError]
    held: Mapping[str, tuple[Item, Held]] = field(default_factory=dict[str, "tuple[Item, Held]"])
    """The tools that the agent would have, and that wait for a person."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A merged list and what it was made of; one without some servers is kept for a moment only."""

    versions: tuple[int, ...] | None
    listing: Listing
    until: float


@dataclass(frozen=True, slots=True)
class View:
    """One endpoint of one agent."""

    seat: Seat
    exchange: Exchange = field(repr=False)
    server: str | None = None
    governing: Governing = field(default=UNGOVERNED, repr=False)
    _lines: dict[tuple[str, str], Line] = field(default_factory=dict[tuple[str, str], Line], repr=False)
    _listings: dict[tuple[str, str], _Kept] = field(default_factory=dict[tuple[str, str], "_Kept"], repr=False)
    weights: dict[str, tuple[dict[str, Any], int]] = field(
        default_factory=dict[str, tuple[dict[str, Any], int]], repr=False
    )
    """What the definitions of lists that clients were shown cost; ``searching`` keeps it."""
    finders: dict[str, ToolFinder] = field(default_factory=dict[str, ToolFinder], repr=False)

    def __post_init__(self) -> None:
        """Refuse an alias that the agent does not have."""
        if self.server is not None and self.server not in self.seat.plan.servers:
            raise UnknownAlias(f"agent '{self.seat.agent}' has no server '{self.server}'")

    @property
    def aliases(self) -> tuple[str, ...]:
        """The servers it shows, in the plan's order."""
        return tuple(self.seat.plan.servers) if self.server is None else (self.server,)

    @property
    def result_limit(self) -> int | None:
        """The bytes above which a result is kept aside; None when none is."""
        return limit_of(self.seat, self.governing.shelf)

    def fallback_of(self, alias: str) -> str:
        """What a model is told to do instead while the server is not available."""
        return self.seat.planned(alias).definition.value.fallback

    def mark_of(self, alias: str) -> str:
        """What the names of its tools begin with at an endpoint of all servers."""
        prefix = self._prefix(alias)
        return f"{prefix}_" if prefix else ""

    def line(self, alias: str, visitor: Visitor) -> Line:
        """The line to one server for this client; raises why there is none."""
        line = self._lines.get((alias, visitor.declares))
        if line is None or line.is_retired:
            self._forget_retired()
            armed = self.seat.servers[alias]
            if isinstance(armed, OutfitterError):
                raise armed
            line = self.exchange.line(armed, self.seat.name, visitor.era, visitor.capabilities)
            self._lines[alias, visitor.declares] = line
        return line

    def _forget_retired(self) -> None:
        """Let go of lines that are no more, and of the lists of clients that have not asked for the longest time."""
        for key in [key for key, line in self._lines.items() if line.is_retired]:
            del self._lines[key]
        for key in tuple(self._listings)[:-_MOST_LISTINGS]:
            del self._listings[key]

    async def gather(
        self, visitor: Visitor, job: Callable[[Line], Awaitable[Any]], among: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The job done on every line at once; a server that fails gives its error and holds up no other.

        ``among`` are the servers that are asked, if not all.
        """
        asked = self.aliases if among is None else among
        found: dict[str, Any] = {}

        async def one(alias: str) -> None:
            try:
                found[alias] = await job(self.line(alias, visitor))
            except OutfitterError as error:
                found[alias] = error

        async with anyio.create_task_group() as group:
            for alias in asked:
                group.start_soon(one, alias)
        return {alias: found[alias] for alias in asked}

    async def listing(self, method: str, visitor: Visitor, *, is_fresh: bool = False) -> Listing:
        """The merged list of every server that answers, as this agent may see it.

        One that need not be fresh holds nobody up while a server changes its lists all the time.
        """
        known = self._listings.get((method, visitor.declares))
        versions = self._versions(method, visitor, is_fresh=is_fresh)
        if known is not None and versions is not None and known.versions == versions:
            is_whole = not known.listing.failures
            if is_whole or (not is_fresh and loop_time() < known.until):
                return known.listing
        listing = await self._merge(method, visitor, is_fresh=is_fresh)
        versions = self._versions(method, visitor, is_fresh=False)
        self._listings.pop((method, visitor.declares), None)  # the newest stand last
        self._listings[method, visitor.declares] = _Kept(versions, listing, loop_time() + _RETRY_SECONDS)
        return listing

    def known(self, method: str, visitor: Visitor) -> Listing | None:
        """The list that ``listing`` gives at once; None when it would have to be made."""
        kept = self._listings.get((method, visitor.declares))
        if (
            kept is None
            or (kept.listing.failures and loop_time() >= kept.until)
            or kept.versions != self._versions(method, visitor, is_fresh=False)
        ):
            return None
        return kept.listing

    def is_stale(self, method: str, visitor: Visitor) -> bool:
        """Whether a server has said that its list changed, and it has not been fetched again yet."""
        for alias in self.aliases:
            try:
                if self.line(alias, visitor).is_stale(method):
                    return True
            except OutfitterError:
                continue
        return False

    def _versions(self, method: str, visitor: Visitor, *, is_fresh: bool) -> tuple[int, ...] | None:
        """What must not have changed for a list to hold; None when it must be made anew."""
        versions: list[int] = []
        for alias in self.aliases:
            try:
                line = self.line(alias, visitor)
            except OutfitterError:
                versions.append(_NONE)
                continue
            if line.is_stale(method) if is_fresh else line.is_due(method):
                return None
            versions.append(line.version(method))
        return tuple(versions)

    async def _merge(self, method: str, visitor: Visitor, *, is_fresh: bool) -> Listing:
        found = await self.gather(visitor, lambda line: line.items(method, is_fresh=is_fresh), self._having(method))
        failures = {alias: error for alias, error in found.items() if isinstance(error, OutfitterError)}
        known = {alias: self._last_known(alias, method, visitor) for alias in failures}
        if method == "tools/list":
            self.remember(found, visitor)
        return self.put_together(method, {**found, **known}, failures, visitor)

    def put_together(
        self, method: str, lists: Mapping[str, tuple[Message, ...]], failures: Mapping[str, OutfitterError],
        visitor: Visitor,
    ) -> Listing:  # fmt: skip
        """The lists of servers as one, as this agent may see it."""
        waits: _Waiting = self._waiting(lists, visitor) if method == "tools/list" else {}
        named = self._named(method, lists) if method in _NAMED else self._addressed(method, lists)
        laid, is_cut = self._overrides() if method == "tools/list" else {}, self.result_limit is not None
        items = {
            shown: Item(entry, alias, name, self.line(alias, visitor), renamed, laid.get((alias, name)), is_cut)
            for shown, (alias, name, entry, renamed) in named.items()
        }
        held = {
            shown: (items.pop(shown), waits[alias][name])
            for shown, (alias, name, _, _) in named.items()
            if waits and name in waits[alias]
        }
        return Listing(items, failures, held)

    def seen(self, alias: str) -> SeenServer | None:
        """What a server last said of itself; None when nothing is known."""
        return self.governing.last_seen.recall(seen_key(self.seat.planned(alias), self.seat.agent))

    def remember(self, found: Mapping[str, Any], visitor: Visitor) -> None:
        """Keep what servers have just said of themselves: their tools, by alias, or errors, which are left out."""
        for alias, items in found.items():
            if not isinstance(items, OutfitterError):
                line = self.line(alias, visitor)
                note_seen(self.governing.last_seen, self.seat.planned(alias), self.seat.agent, line, items)

    def _having(self, method: str) -> Collection[str]:
        """The servers that may have such a list: where tools are searched, nobody who was seen without it is asked."""
        if method == "tools/list" or self.seat.plan.agent.tool_search.mode is SearchMode.NEVER:
            return self.aliases
        kind, seen = method.partition("/")[0], {alias: self.seen(alias) for alias in self.aliases}
        return [alias for alias, one in seen.items() if one is None or kind in one.capabilities]

    def _overrides(self) -> dict[tuple[str, str], ToolOverride]:
        """What the plan says otherwise about tools, by alias and own name."""
        found = ((alias, self.seat.planned(alias).overrides) for alias in self.aliases)
        return {(alias, tool): one.value for alias, overrides in found for tool, one in overrides.items()}

    def _last_known(self, alias: str, method: str, visitor: Visitor) -> tuple[Message, ...]:
        """The list of a server that does not answer as it last was: its tools stay, and a call says what is wrong."""
        try:
            return self.line(alias, visitor).last_known(method)
        except OutfitterError:
            return ()

    def _named(self, method: str, lists: Mapping[str, tuple[Message, ...]]) -> dict[str, _Found]:
        """What the agent has and what waits for a person, which keeps its name meanwhile."""
        entries: dict[ToolKey, Message] = {}
        for alias, items in lists.items():
            planned = self.seat.planned(alias)
            for entry in items:
                name = str(entry.get("name"))
                if method != "tools/list" or planned.allows(name):
                    entries.setdefault(ToolKey(alias, name), entry)
        if self.server is not None:
            return {key.tool: (key.server, key.tool, entry, None) for key, entry in entries.items()}
        names = build_name_map((key, self._prefix(key.server)) for key in entries).shown
        return {names[key]: (key.server, key.tool, entry, names[key]) for key, entry in entries.items()}

    def _waiting(self, lists: Mapping[str, tuple[Message, ...]], visitor: Visitor) -> _Waiting:
        """The tools that wait for a person, by alias; nothing at all when none does."""
        waits: dict[str, Mapping[str, Held]] = {alias: {} for alias in lists}
        for alias, items in lists.items():
            if items:
                defined = partial(self.line(alias, visitor).definitions, items)
                waits[alias] = held_back(self.seat.planned(alias), self.seat.agent, defined, self.governing.pins)
        return waits if any(waits.values()) else {}

    def lines_with(self, keys: Collection[str]) -> list[Line]:
        """Its lines to servers whose pins are kept under one of these keys."""
        lines = [(alias, line) for (alias, _), line in self._lines.items() if not line.is_retired]
        return [line for alias, line in lines if pin_key(self.seat.planned(alias), self.seat.agent) in keys]

    def said_by(self, alias: str, instructions: str) -> str:
        """What a server says of itself, unless that waits for a person."""
        return said_by(self.seat.planned(alias), self.seat.agent, instructions, self.governing.pins)

    def _prefix(self, alias: str) -> str:
        planned: PlannedServer = self.seat.planned(alias)
        return planned.prefix

    @staticmethod
    def _addressed(method: str, lists: Mapping[str, tuple[Message, ...]]) -> dict[str, _Found]:
        key = "uri" if method == "resources/list" else "uriTemplate"
        shown: dict[str, _Found] = {}
        for alias, items in lists.items():
            for entry in items:
                address = str(entry.get(key))
                shown.setdefault(address, (alias, address, entry, None))
        return shown

    async def owner_of(self, uri: str, visitor: Visitor) -> Item | None:
        """Who has the resource: by its address, or by the first template that it fits."""
        listed = (await self.listing("resources/list", visitor)).items
        if uri in listed:
            return listed[uri]
        templates = (await self.listing("resources/templates/list", visitor)).items
        if uri in templates:
            return templates[uri]
        return next((item for template, item in templates.items() if fits(template, uri)), None)


def fits(template: str, uri: str) -> bool:
    """Whether an address may come from a template; each ``{…}`` stands for anything. Linear in both."""
    first, *pieces = _VARIABLE.split(template)
    if not pieces:
        return template == uri
    if not uri.startswith(first) or not uri.endswith(pieces[-1]):
        return False
    place = len(first)
    for piece in pieces[:-1]:
        found = uri.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return place <= len(uri) - len(pieces[-1])


def as_object(value: object) -> Message:
    """The value if it is an object, an empty one otherwise."""
    return cast("Message", value) if isinstance(value, dict) else {}
