"""Turning inline definitions into registry entries with refs (document 4, phase 4), on values alone.

Equal definitions become one entry. What an agent gets does not change: headers and filters stay with whoever wrote
them, and an entry that would add headers or hide tools is not reused but only pointed out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from outfitter.catalog import (
    Agent,
    Capability,
    Catalog,
    InlineServer,
    MCPServer,
    ServerEntry,
    ServerRef,
    ServerUse,
    ToolFilter,
)


@dataclass(frozen=True, slots=True)
class Move:
    """One inline definition that becomes a ref."""

    user: str
    alias: str
    entry_id: str
    is_new: bool
    similar: str = ""


@dataclass(frozen=True, slots=True)
class Migration:
    """The catalog after the change, and each step of it."""

    catalog: Catalog
    moves: tuple[Move, ...]


def migrate(catalog: Catalog) -> Migration:
    """The catalog with every inline definition replaced by a ref to an entry."""
    entries = dict(catalog.servers)
    moves: list[Move] = []
    capabilities: dict[str, Capability] = {}
    for capability in catalog.capabilities.values():
        uses = _migrate_uses(f"capability '{capability.name}'", capability.servers, entries, moves)
        capabilities[capability.name] = replace(capability, servers=uses)
    agents: dict[str, Agent] = {}
    for agent in catalog.agents.values():
        uses = _migrate_uses(f"agent '{agent.name}'", agent.servers, entries, moves)
        agents[agent.name] = replace(agent, servers=uses)
    return Migration(Catalog(entries, capabilities, agents), tuple(moves))


def _migrate_uses(
    user: str, uses: Mapping[str, ServerUse], entries: dict[str, ServerEntry], moves: list[Move]
) -> dict[str, ServerUse]:
    return {
        alias: _migrate_use(user, alias, use, entries, moves) if isinstance(use, InlineServer) else use
        for alias, use in uses.items()
    }


def _migrate_use(
    user: str, alias: str, use: InlineServer, entries: dict[str, ServerEntry], moves: list[Move]
) -> ServerRef:
    wanted = replace(use.server, tools=ToolFilter(), description="")
    same = [entry for entry in entries.values() if _means(entry.server, wanted)]
    plain = [
        entry for entry in same if entry.server.tools.is_open and not entry.default_headers and not entry.header_schema
    ]
    if plain:
        moves.append(Move(user, alias, plain[0].id, is_new=False))
        return ServerRef(plain[0].id, use.headers, use.server.tools)
    id_ = _free_id(alias, entries)
    entries[id_] = ServerEntry(replace(use.server, name=id_, tools=ToolFilter()))
    moves.append(Move(user, alias, id_, is_new=True, similar=same[0].id if same else ""))
    return ServerRef(id_, use.headers, use.server.tools)


def _means(server: MCPServer, wanted: MCPServer) -> bool:
    """Whether both reach the same thing in the same way, whatever they are called."""
    return replace(server, name=wanted.name, tools=ToolFilter(), description="") == wanted


def _free_id(alias: str, entries: Mapping[str, ServerEntry]) -> str:
    id_, number = alias, 2
    while id_ in entries:
        id_, number = f"{alias[:60]}-{number}", number + 1
    return id_
