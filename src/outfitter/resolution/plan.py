"""WHAT THIS RUN GETS: the answer of resolution, every value with its source.

A ``RunPlan`` is blank: placeholders unfilled, secrets as references. ``arming`` makes an ``ArmedPlan`` of it, another
type, so that a plan cannot be armed twice and nothing connects with a blank one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from outfitter.basics import Origin, Sourced
from outfitter.catalog import (
    Agent,
    Auth,
    Catalog,
    HeaderSchema,
    JsonValue,
    MCPServer,
    NameMap,
    ToolFilter,
    ToolKey,
    ToolOverride,
    ToolRule,
    build_name_map,
)
from outfitter.policy import Allow, Ask, Decision, Deny, judge
from outfitter.resolution.values import HeaderValue


@dataclass(frozen=True, slots=True)
class Gate:
    """One level's tool filter."""

    filter: ToolFilter
    origin: Origin


@dataclass(frozen=True, slots=True)
class RuleSet:
    """One level's rules about calls; every set must agree, so that a child cannot loosen its parent's."""

    rules: tuple[ToolRule, ...]
    origin: Origin
    alias: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the operator should know that does not stop the run."""

    code: str
    message: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class PlannedServer:
    """One server of a run under its alias: the definition, the headers, the gates its tools pass."""

    alias: str
    entry_id: str | None
    definition: Sourced[MCPServer]
    auth: Auth
    headers: Mapping[str, Sourced[HeaderValue]]
    removed: Mapping[str, Sourced[HeaderValue | None]]
    missing: tuple[str, ...]
    header_schema: Mapping[str, HeaderSchema]
    gates: tuple[Gate, ...]
    rule_sets: tuple[RuleSet, ...]
    known_tools: tuple[str, ...] | None
    uses: tuple[Origin, ...]
    is_approved: bool = True
    overrides: Mapping[str, Sourced[ToolOverride]] = field(default_factory=dict[str, Sourced[ToolOverride]])
    """What is said otherwise about single tools; where several levels speak, the last is the source."""

    def __reduce__(self) -> NoReturn:
        """Refuse: a plan may hold what must not be written anywhere."""
        raise TypeError("a PlannedServer cannot be pickled or copied to another process")

    @property
    def id(self) -> str:
        """Under which name it is remembered: that of its entry, where it has one."""
        return self.entry_id or self.alias

    @property
    def prefix(self) -> str:
        """What stands before the names of its tools."""
        prefix = self.definition.value.tool_prefix
        return self.alias if prefix is None else prefix

    def closed_by(self, tool: str) -> tuple[Gate, str] | None:
        """The first gate that keeps the tool out, with the reason; None when every gate lets it through."""
        for gate in self.gates:
            fault = gate.filter.fault(tool)
            if fault is not None:
                return gate, fault
        return None

    def allows(self, tool: str) -> bool:
        """Whether every gate lets the tool through."""
        return self.closed_by(tool) is None

    def decide(self, tool: str, arguments: Mapping[str, JsonValue], *, read_only: bool = False) -> Decision:
        """What filters and rules together say about one call; ``read_only`` is what its server says of the tool."""
        is_believed = read_only and self.definition.value.trusted
        closed = self.closed_by(tool)
        if closed is not None:
            return Deny(f"'{tool}' is {closed[1]} of {closed[0].origin}")
        answers = [
            judge(rule_set.rules, rule_set.alias, tool, arguments, read_only=is_believed) for rule_set in self.rule_sets
        ]
        for kind in (Deny, Ask):
            for answer in answers:
                if isinstance(answer, kind):
                    return answer
        return next((answer for answer in answers if answer.rule is not None), Allow())

    def offered_tools(self) -> tuple[str, ...] | None:
        """The known tools that pass every gate; None when the server's tool list is not known here."""
        if self.known_tools is None:
            return None
        return tuple(tool for tool in self.known_tools if self.allows(tool))


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything an agent gets in one run, blank."""

    agent: Agent
    servers: Mapping[str, PlannedServer]
    notices: tuple[Notice, ...] = ()
    session_id: str | None = None
    run_id: str | None = None
    is_run: bool = False
    catalog: Catalog = field(default_factory=Catalog, repr=False, compare=False)

    def __reduce__(self) -> NoReturn:
        """Refuse: a plan may hold what must not be written anywhere."""
        raise TypeError("a RunPlan cannot be pickled or copied to another process")

    def name_map(self) -> NameMap:
        """The names under which a model sees the tools that are known and let in."""
        return build_name_map(
            (ToolKey(server.alias, tool), server.prefix)
            for server in self.servers.values()
            for tool in server.offered_tools() or ()
        )
