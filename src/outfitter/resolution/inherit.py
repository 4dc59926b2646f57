"""What a child gets from its parent: for the same server, the parent's headers win and its gates and rules stay.

Servers are the same when they come from the same registry entry (or are equal inline definitions); aliases need not
agree. A header that the parent removed stays removed.
"""

from __future__ import annotations

from collections.abc import Mapping

from outfitter.basics import Level, Origin, Sourced
from outfitter.catalog import MCPServer, ToolOverride
from outfitter.errors import AliasConflict
from outfitter.resolution.plan import Gate, PlannedServer, RuleSet, RunPlan
from outfitter.resolution.values import HeaderValue, bind_value


def inherited_origin(parent: RunPlan) -> Origin:
    """The parent as a speaker in the child's chain."""
    return Origin(Level.PARENT, parent.agent.name, parent.session_id or "")


def parent_server(
    parent: RunPlan | None, alias: str, entry_id: str | None, definition: MCPServer
) -> PlannedServer | None:
    """The parent's server that the child's scope must stay within; AliasConflict when two would do and they differ."""
    if parent is None:
        return None
    same = [
        server
        for server in parent.servers.values()
        if server.entry_id == entry_id and (entry_id is not None or _is_same(server.definition.value, definition))
    ]
    named = [server for server in same if server.alias == alias]
    if named or not same:
        return named[0] if named else None
    if all(_scope(server) == _scope(same[0]) for server in same):
        return same[0]
    aliases = ", ".join(f"'{server.alias}'" for server in same)
    message = (
        f"server '{alias}': parent agent '{parent.agent.name}' has this server under {aliases} with different scopes"
    )
    raise AliasConflict(message, hint="give the child's server the alias of the scope it should inherit")


def _is_same(one: MCPServer, other: MCPServer) -> bool:
    """Whether two inline definitions reach the same thing; an inline server is named after its alias."""
    return (one.transport, one.env) == (other.transport, other.env)


def _scope(server: PlannedServer) -> object:
    return server.headers, server.removed, server.gates, server.rule_sets, server.overrides


def inherited_headers(parent: RunPlan, server: PlannedServer) -> Mapping[str, Sourced[HeaderValue | None]]:
    """The parent's headers as the child must have them, the parent's ids written in."""
    kept: dict[str, Sourced[HeaderValue | None]] = {
        name: Sourced(bind_value(header.value, parent.session_id, parent.run_id), header.origin)
        for name, header in server.headers.items()
    }
    return {**kept, **server.removed}


def inherited_gates(parent: RunPlan, server: PlannedServer) -> tuple[Gate, ...]:
    """The parent's filters, which the child's tools must pass too."""
    return tuple(Gate(gate.filter, _via(parent, gate.origin)) for gate in server.gates)


def inherited_rules(parent: RunPlan, server: PlannedServer) -> tuple[RuleSet, ...]:
    """The parent's rules, which the child's calls must meet too."""
    return tuple(RuleSet(rules.rules, _via(parent, rules.origin), rules.alias) for rules in server.rule_sets)


def inherited_overrides(parent: RunPlan, server: PlannedServer) -> list[tuple[Origin, Mapping[str, ToolOverride]]]:
    """What the parent's levels say otherwise about tools, which holds for the child too."""
    return [(_via(parent, one.origin), {tool: one.value}) for tool, one in server.overrides.items()]


def _via(parent: RunPlan, origin: Origin) -> Origin:
    return Origin(Level.PARENT, parent.agent.name, parent.session_id or "", origin)
