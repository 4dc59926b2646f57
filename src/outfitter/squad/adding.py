"""How does a pattern get into a squad file or a catalog? Values in, values out; no file is opened.

What is there is never replaced: a server of the same name that differs is a conflict, an agent that already has the
server keeps it as it has it. No value of a variable is read or written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from outfitter.basics import quote, suggest
from outfitter.catalog import ALL_TOOLS, Agent, Catalog, JsonValue, ServerEntry, ServerRef, ServerUse
from outfitter.errors import AlreadyExists, NotFound, UnknownAgent
from outfitter.formats import read_squad, write_squad
from outfitter.squad.access import NONE, kind_of
from outfitter.squad.patterns import Pattern, Share, patterns
from outfitter.squad.presets import apply_preset, preset_for

Document: TypeAlias = "dict[str, JsonValue]"


@dataclass(frozen=True, slots=True)
class Added:
    """What adding a pattern does: servers that are new, who gets what, and what there is to say about it."""

    servers: tuple[str, ...] = ()
    routes: tuple[tuple[str, Share], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether everything was there already."""
        return not self.servers and not self.routes


def find_pattern(name: str) -> Pattern:
    """The pattern of this name; NotFound suggests one."""
    known = patterns()
    if name not in known:
        hint = suggest(name, known) or "'outfitter add --list' lists them, 'outfitter registry search' looks further"
        raise NotFound(f"nothing to add is called {quote(name)}", hint=hint)
    return known[name]


def add_to_squad(
    document: Document, pattern: Pattern, to: Sequence[str] = (), *, source: str = ""
) -> tuple[Document, Added]:
    """A squad file's document with the pattern in it; keys and their order stay."""
    catalog = read_squad(document, source)
    roles = _object(document.get("roles"))
    added = _plan(catalog, pattern, to, lambda agent: str(roles.get(agent.name) or agent.name))
    written = dict(document)
    entries = [entry for entry in pattern.servers if entry.id in added.servers]
    if entries:
        servers = write_squad(Catalog.of(entries))["servers"]
        written["servers"] = {**_object(document.get("servers")), **_object(servers)}
    routes = {name: _list(given) for name, given in _object(document.get("agentServers")).items()}
    limits = {name: _object(given) for name, given in _object(document.get("toolRestrictions")).items()}
    for agent, share in added.routes:
        routes[agent] = [*routes[agent], share.server]
        if not share.tools.is_open:
            limits.setdefault(agent, {})[share.server] = {"include": list(share.tools.include or ())}
    if added.routes:
        written["agentServers"] = dict(routes)
        if limits:
            written["toolRestrictions"] = dict(limits)
    read_squad(written, source)
    return written, replace(added, notes=(*added.notes, *_unheld(added, pattern, roles)))


def add_to_catalog(catalog: Catalog, pattern: Pattern, to: Sequence[str] = ()) -> tuple[Catalog, Added]:
    """A catalog with the pattern in it; an agent whose role has a preset also gets its rules about these servers."""
    added = _plan(catalog, pattern, to, lambda agent: agent.role or agent.name)
    entries = {entry.id: entry for entry in pattern.servers}
    agents = dict(catalog.agents)
    for name, share in added.routes:
        agents[name] = _with_server(agents[name], share, entries)
    servers = {**catalog.servers, **{name: entries[name] for name in added.servers}}
    return Catalog(servers, catalog.capabilities, agents), added


def _with_server(agent: Agent, share: Share, entries: Mapping[str, ServerEntry]) -> Agent:
    """The agent with this server, narrowed by its preset; its other servers stay as they are."""
    use: ServerUse = ServerRef(share.server, tools=share.tools)
    alone = apply_preset(replace(agent, servers={share.server: use}), entries)
    return replace(alone, servers={**agent.servers, **alone.servers})


def _plan(catalog: Catalog, pattern: Pattern, to: Sequence[str], role_of: Callable[[Agent], str]) -> Added:
    for name in to:
        if name not in catalog.agents:
            raise UnknownAgent(f"no agent {quote(name)}", hint=suggest(name, catalog.agents))
    new = tuple(entry.id for entry in pattern.servers if not _is_there(entry, catalog))
    routes: list[tuple[str, Share]] = []
    notes: list[str] = []
    for agent in catalog.agents.values():
        if to and agent.name not in to:
            continue
        role = role_of(agent)
        preset = preset_for(role)
        shares = pattern.shares_of(role if preset is None else preset.role) or ((pattern.guest,) if to else ())
        for share in shares:
            if _has(agent, share.server, catalog):
                notes += _kept(agent, share)
                continue
            routes.append((agent.name, share))
            notes += _closed(agent, share, role, pattern)
    if not to and not routes and new:
        notes.append("no agent here has a role that gets it: name agents with --to")
    return Added(new, tuple(routes), tuple(notes))


def _is_there(entry: ServerEntry, catalog: Catalog) -> bool:
    """Whether the catalog has exactly this server; AlreadyExists when it has another of this name."""
    known = catalog.servers.get(entry.id)
    if known is not None and _gist(known) != _gist(entry):
        hint = "rename yours, or keep it and route it yourself; nothing was changed"
        raise AlreadyExists(f"there is another server {quote(entry.id)} already", where=known.source, hint=hint)
    return known is not None


def _gist(entry: ServerEntry) -> object:
    """What makes it this server and no other; an open filter is written in more than one way."""
    server = entry.server
    return replace(server, tools=ALL_TOOLS if server.tools.is_open else server.tools), dict(entry.default_headers)


def _has(agent: Agent, server: str, catalog: Catalog) -> bool:
    shared = [catalog.capabilities[name].servers for name in agent.capabilities if name in catalog.capabilities]
    return any(server in uses for uses in (agent.servers, *shared))


def _kept(agent: Agent, share: Share) -> Iterable[str]:
    """A word where the agent has more of the server than it would be given."""
    use = agent.servers.get(share.server)
    include = use.tools.include if isinstance(use, ServerRef) else None
    # A squad file's reader adds the form without the server's prefix to a name that has it.
    spelled = [(tool, f"{share.server}_{tool}") for tool in include or ()]
    if not share.tools.is_open and (include is None or not all(any(map(share.tools.allows, one)) for one in spelled)):
        yield f"agent '{agent.name}' has '{share.server}' already, with other tools: left as it is"


def _closed(agent: Agent, share: Share, role: str, pattern: Pattern) -> Iterable[str]:
    preset = preset_for(role)
    entry = next(entry for entry in pattern.servers if entry.id == share.server)
    kind = kind_of(share.server, entry)
    if preset is not None and kind is not None and preset.access(kind).tools == NONE.tools:
        yield f"agent '{agent.name}': role '{preset.role}' gets no tools of a {kind.value} server"


def _unheld(added: Added, pattern: Pattern, roles: Mapping[str, JsonValue]) -> Iterable[str]:
    """A word about agents whose role has rules about these servers, and whom the file does not hold to their role."""
    kinds = {entry.id: kind_of(entry.id, entry) for entry in pattern.servers}
    for name, share in added.routes:
        preset, kind = preset_for(name), kinds[share.server]
        if preset is not None and kind is not None and name not in roles and preset.access(kind).rules:
            held = f'"roles": {{"{name}": "{preset.role}"}}'
            yield f"agent '{name}' is held to its list of tools; {held} in the file holds it to its role's rules too"


def _object(value: JsonValue) -> Document:
    return dict(value) if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return list(value) if isinstance(value, list) else []
