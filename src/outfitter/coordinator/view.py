"""One revision of the registry in memory: entries, their values, who refers to whom. Never changed, only replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from outfitter.basics import quote
from outfitter.catalog import Agent, Capability, Catalog, ServerEntry, ServerRef
from outfitter.coordinator.reading import Value, read_stored
from outfitter.errors import NotFound, OutfitterError, Refused, UnknownAgent, UnknownCapability, UnknownServer
from outfitter.resolution import resolve
from outfitter.storage import KINDS, Entry, Kind, User

NO_USERS: frozenset[User] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """What one entry becomes: another entry with its value, or nothing."""

    name: User
    entry: Entry | None = field(default=None, repr=False)
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class View:
    """The registry as one revision has it."""

    revision: int = 0
    catalog: Catalog = field(default_factory=Catalog)
    entries: Mapping[User, Entry] = field(default_factory=dict[User, Entry], repr=False)
    users: Mapping[User, frozenset[User]] = field(default_factory=dict[User, frozenset[User]])

    def entry(self, kind: Kind, name: str) -> Entry:
        """The entry of this id; NotFound when there is none."""
        found = self.entries.get(User(kind, name))
        if found is None:
            raise unknown(kind, name)
        return found

    def value(self, name: User) -> Value | None:
        """The value of an entry."""
        return _shelf(self.catalog, name.kind).get(name.id)

    def users_of(self, name: User) -> tuple[User, ...]:
        """The entries that refer to this one, by kind and id."""
        return tuple(sorted(self.users.get(name, NO_USERS), key=lambda user: (user.kind, user.id)))

    def changed(self, changes: Iterable[Change], revision: int) -> View:
        """The registry after these changes."""
        shelves: dict[Kind, dict[str, Value]] = {kind: dict(_shelf(self.catalog, kind)) for kind in KINDS}
        entries, users = dict(self.entries), dict[User, set[User]]()
        for change in changes:
            before = shelves[change.name.kind].pop(change.name.id, None)
            for target in targets_of(before):
                users.setdefault(target, set(self.users.get(target, NO_USERS))).discard(change.name)
            for target in targets_of(change.value):
                users.setdefault(target, set(self.users.get(target, NO_USERS))).add(change.name)
            entries.pop(change.name, None)
            if change.entry is not None and change.value is not None:
                entries[change.name] = change.entry
                shelves[change.name.kind][change.name.id] = change.value
        told = {target: frozenset(names) for target, names in users.items()}
        return View(revision, _catalog(shelves), entries, {**self.users, **told})

    def affected_by(self, names: Iterable[User]) -> tuple[User, ...]:
        """These entries and everybody who refers to them, directly or through a capability."""
        found: dict[User, None] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = None
                waiting.extend(self.users_of(name))
        return tuple(found)


def read_change(name: User, entry: Entry | None) -> Change:
    """What a stored entry becomes in memory."""
    if entry is None:
        return Change(name)
    return Change(name, entry, read_stored(entry.kind, entry.id, entry.document, entry.approved))


def problems_of(catalog: Catalog, names: Iterable[User]) -> dict[tuple[str, str], OutfitterError]:
    """What is wrong with these entries in this catalog: stale refs, and agents that cannot be resolved."""
    problems: dict[tuple[str, str], OutfitterError] = {}
    for name in names:
        for problem in _problems(catalog, name):
            problems[problem.code, str(problem)] = problem
    return problems


def _problems(catalog: Catalog, name: User) -> Iterator[OutfitterError]:
    if name.kind == "capabilities" and name.id in catalog.capabilities:
        for target in targets_of(catalog.capabilities[name.id]):
            try:
                catalog.server(target.id, where=f"{name.kind}/{name.id}")
            except OutfitterError as problem:
                yield problem
    elif name.kind == "agents" and name.id in catalog.agents:
        try:
            resolve(name.id, catalog)
        except Refused as refused:
            yield from refused.problems
        except OutfitterError as problem:
            yield problem


def targets_of(value: Value | None) -> Iterator[User]:
    """What a value refers to."""
    if value is None or isinstance(value, ServerEntry):
        return
    for use in value.servers.values():
        if isinstance(use, ServerRef) and use.ref is not None:
            yield User("mcp-servers", use.ref)
    for name in value.capabilities if isinstance(value, Agent) else ():
        yield User("capabilities", name)


def _shelf(catalog: Catalog, kind: Kind) -> Mapping[str, Value]:
    if kind == "mcp-servers":
        return catalog.servers
    return catalog.capabilities if kind == "capabilities" else catalog.agents


def _catalog(shelves: Mapping[Kind, Mapping[str, Value]]) -> Catalog:
    return Catalog(
        cast("Mapping[str, ServerEntry]", shelves["mcp-servers"]),
        cast("Mapping[str, Capability]", shelves["capabilities"]),
        cast("Mapping[str, Agent]", shelves["agents"]),
    )


def unknown(kind: Kind, name: str) -> NotFound:
    """The error for an id that nothing has. It suggests none: there may be thousands to compare with."""
    if kind == "mcp-servers":
        return UnknownServer(f"no MCP server {quote(name)} in the registry")
    if kind == "capabilities":
        return UnknownCapability(f"no capability {quote(name)}")
    return UnknownAgent(f"no agent {quote(name)}")
