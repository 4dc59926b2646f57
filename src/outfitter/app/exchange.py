"""Bringing foreign definitions into a catalog, and one agent's servers out of it. Values only; nothing is started."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from outfitter.catalog import Catalog, HeaderSetting, ServerEntry, ToolFilter
from outfitter.errors import AlreadyExists, OutfitterError, Refused
from outfitter.resolution import Merged, PlannedServer, RunPlan, text_of


@dataclass(frozen=True, slots=True)
class Merge:
    """A catalog with definitions added: what is new, what was replaced, what was there already."""

    catalog: Catalog
    added: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]


def merge_catalog(catalog: Catalog, other: Catalog, *, may_replace: bool = False) -> Merge:
    """The catalog with the other's definitions; Refused when one exists and differs, unless it may be replaced."""
    added: list[str] = []
    replaced: list[str] = []
    unchanged: list[str] = []
    kinds = (("server", catalog.servers, other.servers), ("capability", catalog.capabilities, other.capabilities),
             ("agent", catalog.agents, other.agents))  # fmt: skip
    for kind, mine, theirs in kinds:
        for name, item in theirs.items():
            known = mine.get(name)
            bucket = added if known is None else unchanged if known == item else replaced
            bucket.append(f"{kind} '{name}'")
    if replaced and not may_replace:
        raise Refused("some definitions exist and differ", _conflicts(replaced))
    merged = Catalog(
        {**catalog.servers, **other.servers},
        {**catalog.capabilities, **other.capabilities},
        {**catalog.agents, **other.agents},
    )
    return Merge(merged, tuple(added), tuple(replaced), tuple(unchanged))


def _conflicts(names: Iterable[str]) -> list[OutfitterError]:
    hint = "give --replace to take the new one, or rename it in its file"
    return [AlreadyExists(f"{name} is in the catalog with another definition", hint=hint) for name in names]


def entries_of(plan: RunPlan) -> tuple[ServerEntry, ...]:
    """One agent's servers as entries of their own: aliases as names, headers and filters as they were resolved."""
    return tuple(_entry_of(server) for server in plan.servers.values())


def _entry_of(server: PlannedServer) -> ServerEntry:
    definition = replace(server.definition.value, name=server.alias, tools=_filter_of(server))
    headers: dict[str, HeaderSetting] = {}
    for name, header in server.headers.items():
        headers[name] = text_of(header.value) if isinstance(header.value, Merged) else header.value.value
    return ServerEntry(
        server=definition.without_headers(),
        header_schema=server.header_schema,
        default_headers=headers,
        auth=server.auth,
        known_tools=server.known_tools,
        source=server.definition.origin.where,
    )


def _filter_of(server: PlannedServer) -> ToolFilter:
    """All gates as one filter: an include list where the tools are known, else what can be said without them."""
    if not server.gates:
        return ToolFilter()
    offered = server.offered_tools()
    if offered is not None:
        return ToolFilter(offered)
    includes = [gate.filter.include for gate in server.gates if gate.filter.include is not None]
    excluded = tuple(dict.fromkeys(pattern for gate in server.gates for pattern in gate.filter.exclude))
    if not includes:
        return ToolFilter(None, excluded)
    named = dict.fromkeys(pattern for include in includes for pattern in include)
    return ToolFilter(tuple(name for name in named if all(ToolFilter(i).allows(name) for i in includes)), excluded)
