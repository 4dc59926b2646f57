"""The plan in words and plain values: what each agent gets, where it came from, what it overruled.

A projection of the same ``RunPlan`` that is enforced. Sensitive literals appear as a fingerprint, references as
references. ``Explanation.to_json`` is the shape of the CLI's ``--json`` and of the API; laying it out for a terminal is
the CLI's affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from outfitter.basics import Origin, Overruled, Sourced
from outfitter.catalog import (
    Budgets,
    HeaderSchema,
    JsonValue,
    PinMode,
    SseTransport,
    StdioTransport,
    ToolKey,
    ToolOverride,
)
from outfitter.resolution.chain import is_sensitive
from outfitter.resolution.describing import Governed, describe_rule
from outfitter.resolution.pinning import package_notices
from outfitter.resolution.plan import Gate, Notice, PlannedServer, RuleSet, RunPlan
from outfitter.resolution.values import HeaderValue, Merged, show_sensitive, text_of


@dataclass(frozen=True, slots=True)
class ExplainedHeader:
    """One header: its value as it may be shown, who gave it, whom that overruled."""

    name: str
    value: str | None
    origin: Origin
    overruled: tuple[tuple[str, Origin], ...] = ()
    members: Mapping[str, Origin] | None = None
    note: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainedTool:
    """One known tool: the name a model sees and whether it gets it, with the gate that decided."""

    name: str
    shown: str | None
    is_offered: bool
    gate: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainedServer:
    """One server of the plan."""

    alias: str
    ref: str | None
    target: str
    transport: str
    origin: Origin
    uses: tuple[Origin, ...]
    headers: tuple[ExplainedHeader, ...]
    removed: tuple[ExplainedHeader, ...]
    missing: tuple[str, ...]
    gates: tuple[Gate, ...]
    rules: tuple[RuleSet, ...]
    tools: tuple[ExplainedTool, ...] | None
    fallback: str = ""
    """What the model is told to do instead while the server is not available."""
    pins: PinMode = PinMode.FIRST_USE
    trusted: bool = False
    overrides: Mapping[str, Sourced[ToolOverride]] = field(default_factory=dict[str, Sourced[ToolOverride]])


@dataclass(frozen=True, slots=True)
class Explanation:
    """A whole plan, explained."""

    agent: str
    role: str
    where: str
    servers: tuple[ExplainedServer, ...]
    notices: tuple[Notice, ...]
    governed: Governed = field(default_factory=Governed)

    def to_json(self) -> dict[str, JsonValue]:
        """The explanation as JSON values."""
        search = self.governed.tool_search
        return {
            "agent": self.agent,
            "role": self.role,
            "source": self.where,
            "servers": [_server_json(server) for server in self.servers],
            "budgets": _budgets_json(self.governed.budgets),
            "tool_search": {"mode": search.mode.value, "threshold": search.threshold},
            "result_limit": self.governed.result_limit,
            "client_approvals": self.governed.client_approvals,
            "notices": [{"code": n.code, "message": n.message, "where": n.where} for n in self.notices],
        }


def explain(plan: RunPlan) -> Explanation:
    """What the plan gives its agent, and why."""
    shown = plan.name_map().shown
    servers = tuple(_explain_server(server, shown) for server in plan.servers.values())
    agent = plan.agent
    notices = (*plan.notices, *package_notices(plan))
    return Explanation(agent.name, agent.role, agent.source, servers, notices, Governed.of(agent))


def show_value(value: HeaderValue, *, sensitive: bool) -> str:
    """The value as it may be shown to a person."""
    return show_sensitive(value) if sensitive else text_of(value)


def _explain_server(server: PlannedServer, shown: Mapping[ToolKey, str]) -> ExplainedServer:
    schemas = {name.lower(): schema for name, schema in server.header_schema.items()}
    kind, target = describe_target(server)
    return ExplainedServer(
        alias=server.alias,
        ref=server.entry_id,
        target=target,
        transport=kind,
        origin=server.definition.origin,
        uses=server.uses,
        headers=tuple(_explain_header(n, h, schemas.get(n.lower())) for n, h in server.headers.items()),
        removed=tuple(_explain_header(n, h, schemas.get(n.lower())) for n, h in server.removed.items()),
        missing=server.missing,
        gates=server.gates,
        rules=server.rule_sets,
        tools=None
        if server.known_tools is None
        else tuple(explain_tool(server, tool, shown) for tool in server.known_tools),
        fallback=server.definition.value.fallback,
        pins=server.definition.value.pins,
        trusted=server.definition.value.trusted,
        overrides=server.overrides,
    )


def describe_target(server: PlannedServer) -> tuple[str, str]:
    """The transport's name, and the URL or command line as it is written."""
    transport = server.definition.value.transport
    if isinstance(transport, StdioTransport):
        return "stdio", " ".join((transport.command, *transport.args))
    return ("sse" if isinstance(transport, SseTransport) else "http"), transport.url


def _explain_header(
    name: str, header: Sourced[HeaderValue] | Sourced[HeaderValue | None], schema: HeaderSchema | None
) -> ExplainedHeader:
    sensitive = is_sensitive(name, schema)
    flags = [flag for flag in ("required", "locked", "internal") if schema is not None and getattr(schema, flag)]
    flags += ["sensitive"] * sensitive
    flags += ["narrows"] * bool(schema and schema.narrows)
    value = header.value
    members = {k: m.origin for k, m in value.members.items()} if isinstance(value, Merged) else None
    return ExplainedHeader(
        name,
        None if value is None else show_value(value, sensitive=sensitive),
        header.origin,
        tuple(_explain_overruled(o, sensitive=sensitive) for o in header.overruled),
        members,
        header.note,
        tuple(flags),
    )


def _explain_overruled(overruled: Overruled[HeaderValue | None], *, sensitive: bool) -> tuple[str, Origin]:
    value = overruled.value
    return ("" if value is None else show_value(value, sensitive=sensitive)), overruled.origin


def explain_tool(server: PlannedServer, tool: str, shown: Mapping[ToolKey, str]) -> ExplainedTool:
    """Whether the agent gets this tool, and which gate let it in or kept it out."""
    rules = tuple(
        describe_rule(rule) for rules in server.rule_sets for rule in rules.rules if rule.speaks_of(rules.alias, tool)
    )
    closed = server.closed_by(tool)
    if closed is not None:
        return ExplainedTool(tool, None, is_offered=False, gate=f"{closed[1]} of {closed[0].origin}", rules=rules)
    gate = (
        f"let in by {', '.join(str(gate.origin) for gate in server.gates)}"
        if server.gates
        else "no filter at any level"
    )
    return ExplainedTool(tool, shown.get(ToolKey(server.alias, tool)), is_offered=True, gate=gate, rules=rules)


def _budgets_json(budgets: Budgets) -> dict[str, JsonValue]:
    return {
        "concurrent_calls": budgets.concurrent_calls,
        "calls_per_second": budgets.calls_per_second,
        "repeats": budgets.repeats,
        "limits": [
            {"budget": one.name, "amount": one.amount, "server": one.server, "tool": one.tool} for one in budgets.limits
        ],
    }


def origin_json(origin: Origin) -> dict[str, JsonValue]:
    """An origin as JSON values."""
    shown: dict[str, JsonValue] = {"level": origin.level.value, "name": origin.name, "where": origin.where}
    if origin.via is not None:
        shown["via"] = origin_json(origin.via)
    return shown


def _header_json(header: ExplainedHeader) -> dict[str, JsonValue]:
    return {
        "name": header.name,
        "value": header.value,
        "origin": origin_json(header.origin),
        "overruled": [{"value": value, "origin": origin_json(origin)} for value, origin in header.overruled],
        "members": None if header.members is None else {k: origin_json(o) for k, o in header.members.items()},
        "note": header.note,
        "flags": list(header.flags),
    }


def _server_json(server: ExplainedServer) -> dict[str, JsonValue]:
    return {
        "alias": server.alias,
        "ref": server.ref,
        "type": server.transport,
        "target": server.target,
        "origin": origin_json(server.origin),
        "uses": [origin_json(origin) for origin in server.uses],
        "headers": [_header_json(header) for header in server.headers],
        "removed": [_header_json(header) for header in server.removed],
        "missing": list(server.missing),
        "filters": [_gate_json(gate) for gate in server.gates],
        "rules": [
            {"tools": list(rule.tools), "says": describe_rule(rule), "origin": origin_json(rules.origin)}
            for rules in server.rules
            for rule in rules.rules
        ],
        "tools": None if server.tools is None else [_tool_json(tool) for tool in server.tools],
        "fallback": server.fallback,
        "pins": server.pins.value,
        "trusted": server.trusted,
        "overrides": {tool: _override_json(one) for tool, one in server.overrides.items()},
    }


def _override_json(override: Sourced[ToolOverride]) -> dict[str, JsonValue]:
    one = override.value
    return {
        "title": one.title,
        "description": one.description,
        "defaults": dict(one.defaults),
        "hidden": list(one.hidden),
        "origin": origin_json(override.origin),
        "overruled": [origin_json(before.origin) for before in override.overruled],
    }


def _gate_json(gate: Gate) -> dict[str, JsonValue]:
    include = gate.filter.include
    return {
        "include": None if include is None else list(include),
        "exclude": list(gate.filter.exclude),
        "origin": origin_json(gate.origin),
    }


def _tool_json(tool: ExplainedTool) -> dict[str, JsonValue]:
    return {
        "name": tool.name,
        "shown": tool.shown,
        "offered": tool.is_offered,
        "gate": tool.gate,
        "rules": list(tool.rules),
    }


def blueprint(plan: RunPlan) -> dict[str, JsonValue]:
    """The resolved blueprint in document 4's shape: placeholders unfilled, sensitive literals masked."""
    servers: dict[str, JsonValue] = {}
    for server in plan.servers.values():
        kind, target = describe_target(server)
        transport = server.definition.value.transport
        schemas = {name.lower(): schema for name, schema in server.header_schema.items()}
        if isinstance(transport, StdioTransport):
            servers[server.alias] = {"type": kind, "command": transport.command, "args": list(transport.args)}
        else:
            headers: dict[str, JsonValue] = {
                name: show_value(header.value, sensitive=is_sensitive(name, schemas.get(name.lower())))
                for name, header in server.headers.items()
            }
            servers[server.alias] = {"type": kind, "url": target, "headers": headers}
    return {"name": plan.agent.name, "system_prompt": plan.agent.system_prompt, "mcp_servers": servers}
