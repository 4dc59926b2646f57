"""A run's blank plan as it is stored with its session, and back: with provenance, so that children inherit from it.

What is sensitive goes to the database sealed: ``write_plan`` names the places, and this is why this file must know the
text of a literal. A credential of a run is never written: a reference stands in its place (``credentials``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

from outfitter.basics import Level, Origin, Overruled, Secret, SecretRef, Sourced
from outfitter.catalog import Agent, Catalog, ServerEntry, ToolFilter
from outfitter.coordinator.credentials import reference
from outfitter.coordinator.sensitive import is_reference, is_sensitive, sensitive_pointers
from outfitter.formats import (
    pointer,
    read_agent,
    read_entry,
    read_override,
    write_agent,
    write_entry,
    write_override,
)
from outfitter.resolution import Gate, Merged, Notice, Plain, PlannedServer, RuleSet, RunPlan

Json: TypeAlias = dict[str, Any]
H = TypeVar("H", Plain, "Plain | Merged", "Plain | Merged | None")
HeaderValue: TypeAlias = Plain | Merged
_FORM = 1


@dataclass(frozen=True, slots=True)
class WrittenPlan:
    """A plan as it is stored: where to seal it, and the credentials that its references stand for."""

    document: Json = field(repr=False)
    sealed: frozenset[str]
    held: Mapping[SecretRef, Secret]


@dataclass(slots=True)
class _Pen:
    """What is found while a plan is written."""

    run_id: str
    credentials: frozenset[Secret]
    sealed: set[str] = field(default_factory=set[str])
    held: dict[Secret, SecretRef] = field(default_factory=dict[Secret, SecretRef])

    def refer(self, secret: Secret) -> SecretRef:
        if secret not in self.held:
            self.held[secret] = reference(self.run_id, len(self.held) + 1)
        return self.held[secret]


def write_plan(plan: RunPlan, credentials: frozenset[Secret], depth: int) -> WrittenPlan:
    """The plan as a document; ``credentials`` are the secrets that must not be in it."""
    pen = _Pen(plan.run_id or "", credentials)
    agent = plan.agent
    document: Json = {
        "form": _FORM,
        "depth": depth,
        "agent": {"name": agent.name, "role": agent.role, "source": agent.source},
        "session_id": plan.session_id,
        "run_id": plan.run_id,
        "notices": [[notice.code, notice.message, notice.where] for notice in plan.notices],
        "servers": {alias: _write_server(server, ("servers", alias), pen) for alias, server in plan.servers.items()},
    }
    return WrittenPlan(document, frozenset(pen.sealed), {ref: secret for secret, ref in pen.held.items()})


def read_plan(document: Mapping[str, Any], held: Mapping[SecretRef, Secret]) -> RunPlan:
    """The plan of a document, its references to credentials filled with those that are held."""
    agent = document["agent"]
    return RunPlan(
        Agent(agent["name"], role=agent["role"], source=agent["source"]),
        {alias: _read_server(alias, server, held) for alias, server in document["servers"].items()},
        tuple(Notice(*notice) for notice in document["notices"]),
        document["session_id"],
        document["run_id"],
        is_run=True,
    )


def depth_of(document: Mapping[str, Any]) -> int:
    """How many sessions stand above the one that has this plan."""
    return int(document["depth"])


def _write_server(server: PlannedServer, trail: tuple[str, ...], pen: _Pen) -> Json:
    entry = ServerEntry(
        server.definition.value.without_headers(),
        header_schema=server.header_schema,
        auth=server.auth,
        known_tools=server.known_tools,
    )
    written = write_entry(entry)
    inside = sensitive_pointers("mcp-servers", written, Catalog())
    pen.sealed.update(pointer((*trail, "definition")) + place for place in inside)
    return {
        "entry_id": server.entry_id,
        "definition": written,
        "origin": _write_origin(server.definition.origin),
        "headers": {n: _write_header(server, n, h, (*trail, "headers", n), pen) for n, h in server.headers.items()},
        "removed": {n: _write_header(server, n, h, (*trail, "removed", n), pen) for n, h in server.removed.items()},
        "missing": list(server.missing),
        "gates": [_write_gate(gate) for gate in server.gates],
        "rules": [_write_rules(rules) for rules in server.rule_sets],
        "uses": [_write_origin(origin) for origin in server.uses],
        "is_approved": server.is_approved,
        "overrides": {
            tool: {"value": write_override(one.value), "origin": _write_origin(one.origin)}
            for tool, one in server.overrides.items()
        },
    }


def _read_server(alias: str, document: Mapping[str, Any], held: Mapping[SecretRef, Secret]) -> PlannedServer:
    definition = document["definition"]
    origin = _read_origin(document["origin"])
    entry = read_entry(definition, definition["id"], origin.where)
    headers = {name: _read_sourced(item, held) for name, item in document["headers"].items()}
    return PlannedServer(
        alias=alias,
        entry_id=document["entry_id"],
        definition=Sourced(entry.server, origin),
        auth=entry.auth,
        headers=cast("dict[str, Sourced[HeaderValue]]", headers),
        removed={name: _read_sourced(item, held) for name, item in document["removed"].items()},
        missing=tuple(document["missing"]),
        header_schema=entry.header_schema,
        gates=tuple(_read_gate(gate) for gate in document["gates"]),
        rule_sets=tuple(_read_rules(rules) for rules in document["rules"]),
        known_tools=entry.known_tools,
        uses=tuple(_read_origin(origin) for origin in document["uses"]),
        is_approved=document["is_approved"],
        overrides={
            tool: Sourced(read_override(tool, one["value"]), _read_origin(one["origin"]))
            for tool, one in document.get("overrides", {}).items()
        },
    )


def _write_header(server: PlannedServer, name: str, header: Sourced[Any], trail: tuple[str, ...], pen: _Pen) -> Json:
    """A header with its source; its value is sealed when nobody may see it."""
    written = _write_sourced(header, pen)
    seals = is_sensitive(name, server.header_schema)
    for place, node in (((*trail,), written), *_overruled(written, trail)):
        if _is_literal(node["value"]) and (seals or "secret" in node["value"]):
            pen.sealed.add(pointer((*place, "value")))
    return written


def _overruled(written: Json, trail: tuple[str, ...]) -> list[tuple[tuple[str, ...], Json]]:
    return [((*trail, "overruled", str(index)), node) for index, node in enumerate(written["overruled"])]


def _is_literal(value: Json | None) -> bool:
    """Whether a written value holds something of its own, not only a reference."""
    if value is None or "reference" in value:
        return False
    return not (value.get("authored") and is_reference(value.get("plain")))


def _write_sourced(sourced: Sourced[Any], pen: _Pen) -> Json:
    return {
        "value": _write_value(sourced.value, pen),
        "origin": _write_origin(sourced.origin),
        "overruled": [
            {"value": _write_value(other.value, pen), "origin": _write_origin(other.origin)}
            for other in sourced.overruled
        ],
        "note": sourced.note,
    }


def _write_value(value: HeaderValue | None, pen: _Pen) -> Json | None:
    if value is None:
        return None
    if isinstance(value, Merged):
        return {"members": {key: _write_sourced(member, pen) for key, member in value.members.items()}}
    inner = value.value
    if isinstance(inner, Secret) and inner in pen.credentials:
        inner = pen.refer(inner)
    if isinstance(inner, SecretRef):
        return {"reference": str(inner), "authored": value.authored}
    if isinstance(inner, Secret):
        return {"secret": inner.reveal(), "authored": value.authored}
    return {"plain": inner, "authored": value.authored}


def _read_sourced(document: Mapping[str, Any], held: Mapping[SecretRef, Secret]) -> Sourced[HeaderValue | None]:
    return Sourced(
        _read_value(document["value"], held),
        _read_origin(document["origin"]),
        tuple(
            Overruled(_read_value(other["value"], held), _read_origin(other["origin"]))
            for other in document["overruled"]
        ),
        document["note"],
    )


def _read_value(document: Mapping[str, Any] | None, held: Mapping[SecretRef, Secret]) -> HeaderValue | None:
    if document is None:
        return None
    if "members" in document:
        members = {key: _read_sourced(member, held) for key, member in document["members"].items()}
        return Merged(cast("dict[str, Sourced[Plain]]", members))
    authored = bool(document["authored"])
    if "reference" in document:
        ref = SecretRef.parse(document["reference"])
        return Plain(held.get(ref, ref), authored)
    return Plain(Secret(document["secret"]) if "secret" in document else document["plain"], authored)


def _write_origin(origin: Origin) -> list[Any]:
    return [origin.level.value, origin.name, origin.where, None if origin.via is None else _write_origin(origin.via)]


def _read_origin(parts: list[Any]) -> Origin:
    level, name, where, via = parts
    return Origin(Level(level), name, where, None if via is None else _read_origin(via))


def _write_gate(gate: Gate) -> Json:
    include = gate.filter.include
    return {
        "include": None if include is None else list(include),
        "exclude": list(gate.filter.exclude),
        "origin": _write_origin(gate.origin),
    }


def _read_gate(document: Mapping[str, Any]) -> Gate:
    include = document["include"]
    tools = ToolFilter(None if include is None else tuple(include), tuple(document["exclude"]))
    return Gate(tools, _read_origin(document["origin"]))


def _write_rules(rules: RuleSet) -> Json:
    written = write_agent(Agent("rules", rules=rules.rules))
    return {"rules": written.get("rules", []), "origin": _write_origin(rules.origin), "alias": rules.alias}


def _read_rules(document: Mapping[str, Any]) -> RuleSet:
    agent = read_agent({"rules": document["rules"]}, "rules", "")
    return RuleSet(agent.rules, _read_origin(document["origin"]), document["alias"])
