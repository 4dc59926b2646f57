"""Why an agent does not have a thing: a tool, a header or a server, by whatever name a person knows it.

For operators. An agent never sees these answers: to it, a forbidden tool does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from outfitter.basics import suggest
from outfitter.catalog import JsonValue, ToolKey
from outfitter.policy import Held
from outfitter.resolution.explain import describe_rule
from outfitter.resolution.pinning import approval_of, pin_key
from outfitter.resolution.plan import PlannedServer, RunPlan

_NOTHING_WAITS: Mapping[str, Mapping[str, Held]] = {}


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The answer: what was asked about, whether the agent has it after all, the reason, and what would change it."""

    kind: Literal["tool", "header", "server", "unknown"]
    name: str
    server: str | None
    has_it: bool
    reason: str
    remedy: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The answer as JSON values."""
        return {
            "kind": self.kind,
            "name": self.name,
            "server": self.server,
            "has_it": self.has_it,
            "reason": self.reason,
            "remedy": self.remedy,
        }


def why_not(plan: RunPlan, name: str, waiting: Mapping[str, Mapping[str, Held]] = _NOTHING_WAITS) -> tuple[WhyNot, ...]:
    """Every answer about this name: a server or alias, ``server/tool``, a tool, the name a model sees, or a header.

    ``waiting`` has the tools of each alias that are held back until somebody approves them.
    """
    answers = tuple(_about_waiting(plan, name, waiting)) or tuple(_answers(plan, name))
    if answers:
        return answers
    return (_unknown(plan, name),)


def _about_waiting(plan: RunPlan, name: str, waiting: Mapping[str, Mapping[str, Held]]) -> Iterator[WhyNot]:
    for alias, tools in waiting.items():
        server = plan.servers[alias]
        for tool, held in tools.items():
            if tool and name in {tool, f"{alias}/{tool}", f"{server.prefix}_{tool}"}:
                reason = f"held back: {held.reason}, waits for approval"
                remedy = approval_of(pin_key(server, plan.agent.name), held)
                yield WhyNot("tool", tool, alias, has_it=False, reason=reason, remedy=remedy)


def _answers(plan: RunPlan, name: str) -> Iterator[WhyNot]:
    yield from _about_servers(plan, name)
    alias, slash, rest = name.partition("/")
    if slash and (alias in plan.servers or alias in plan.catalog.servers):
        yield from _about_one_server(plan, alias, rest)
        return
    shown = plan.name_map().keys.get(name)
    if shown is not None:
        yield _about_tool(plan.servers[shown.server], shown.tool)
        return
    for server in plan.servers.values():
        yield from _about_header(server, name)
        prefixed = name.removeprefix(f"{server.prefix}_")
        for tool in dict.fromkeys((name, prefixed)):
            if _knows(server, tool):
                yield _about_tool(server, tool)
    yield from _elsewhere(plan, name)


def _about_one_server(plan: RunPlan, alias: str, rest: str) -> Iterator[WhyNot]:
    server = plan.servers.get(alias)
    if server is None:
        yield _absent_server(plan, alias)
        return
    headers = tuple(_about_header(server, rest))
    yield from headers or (_about_tool(server, rest),)


def _knows(server: PlannedServer, tool: str) -> bool:
    """Whether the tool is known here, or a filter names it."""
    named = {pattern for gate in server.gates for pattern in (*(gate.filter.include or ()), *gate.filter.exclude)}
    return tool in (server.known_tools or ()) or tool in named


def _about_tool(server: PlannedServer, tool: str) -> WhyNot:
    closed = server.closed_by(tool)
    if closed is not None:
        gate, fault = closed
        remedy = f"change the tools of {gate.origin}; a later level can only narrow"
        return WhyNot("tool", tool, server.alias, has_it=False, reason=f"{fault} of {gate.origin}", remedy=remedy)
    if server.known_tools is not None and tool not in server.known_tools:
        reason = f"server '{server.alias}' has no tool of this name"
        return WhyNot("tool", tool, server.alias, has_it=False, reason=reason, remedy=suggest(tool, server.known_tools))
    rules = [describe_rule(r) for rules in server.rule_sets for r in rules.rules if r.speaks_of(rules.alias, tool)]
    reason = "every filter lets it in" if server.gates else "no filter at any level keeps it out"
    if rules:
        reason += f"; calls are held to: {'; '.join(rules)}"
    if server.known_tools is None:
        reason += " (the server's own tool list is not known here)"
    return WhyNot("tool", tool, server.alias, has_it=True, reason=reason)


def _about_header(server: PlannedServer, name: str) -> Iterator[WhyNot]:
    lower = name.lower()
    for header, sourced in server.headers.items():
        if header.lower() == lower:
            yield WhyNot("header", header, server.alias, has_it=True, reason=f"given by {sourced.origin}")
    for header, sourced in server.removed.items():
        if header.lower() == lower:
            yield WhyNot("header", header, server.alias, has_it=False, reason=f"removed (null) by {sourced.origin}")
    given = {known.lower() for known in (*server.headers, *server.removed)}
    for header in server.header_schema:
        if header.lower() == lower and lower not in given:
            reason = "declared by the server, and no level gives it a value"
            remedy = "set it at the registry, a capability, the agent or the run"
            yield WhyNot("header", header, server.alias, has_it=False, reason=reason, remedy=remedy)


def _about_servers(plan: RunPlan, name: str) -> Iterator[WhyNot]:
    for server in plan.servers.values():
        if name in {server.alias, server.entry_id}:
            users = " and ".join(str(origin) for origin in server.uses)
            yield WhyNot("server", name, server.alias, has_it=True, reason=f"given as '{server.alias}' by {users}")
    entry_ids = {server.entry_id for server in plan.servers.values()}
    if name in plan.catalog.servers and name not in plan.servers and name not in entry_ids:
        yield _absent_server(plan, name)


def _absent_server(plan: RunPlan, name: str) -> WhyNot:
    users = plan.catalog.users_of(name)
    have = f"; it is used by {', '.join(users)}" if users else "; nobody uses it"
    remedy = f"add it to mcpServers of agent '{plan.agent.name}', or add a capability that has it"
    reason = f"neither agent '{plan.agent.name}' nor its capabilities refer to it{have}"
    return WhyNot("server", name, None, has_it=False, reason=reason, remedy=remedy)


def _elsewhere(plan: RunPlan, name: str) -> Iterator[WhyNot]:
    """The tool or header belongs to servers that the agent does not have."""
    entry_ids = {server.entry_id for server in plan.servers.values()}
    for entry in plan.catalog.servers.values():
        if entry.id in entry_ids:
            continue
        if name in (entry.known_tools or ()) or name in (f"{entry.server.prefix}_{t}" for t in entry.known_tools or ()):
            absent = _absent_server(plan, entry.id)
            reason = f"it belongs to server '{entry.id}', which the agent does not have: {absent.reason}"
            yield WhyNot("tool", name, entry.id, has_it=False, reason=reason, remedy=absent.remedy)


def _unknown(plan: RunPlan, name: str) -> WhyNot:
    known = {key.tool for key in plan.name_map().shown} | set(plan.servers) | set(plan.catalog.servers)
    known |= {header for server in plan.servers.values() for header in (*server.headers, *server.header_schema)}
    known |= {ToolKey(s.alias, t).tool for s in plan.servers.values() for t in s.known_tools or ()}
    reason = "nothing of this name is known: no server, alias, tool or header"
    return WhyNot("unknown", name, None, has_it=False, reason=reason, remedy=suggest(name, known))
