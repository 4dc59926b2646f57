"""From a catalog to servers that can be connected: which servers are meant, armed with what this machine has.

The pool is loaded when one is made: most commands never connect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from outfitter.app.settings import Settings
from outfitter.basics import suggest
from outfitter.catalog import (
    Agent,
    Catalog,
    JsonValue,
    NameMap,
    ServerRef,
    ToolKey,
    apply_override,
    build_name_map,
    complete_arguments,
    hidden_given,
)
from outfitter.errors import CallDenied, NotFound, OutfitterError, UnresolvedPlaceholder
from outfitter.policy import Ask, Definition, Deny, Held
from outfitter.resolution import ArmedServer, RunPlan, Want, approval_of, arm_each, pin_key, resolve, server_wants
from outfitter.upstream import fetch_each, make_providers

if TYPE_CHECKING:
    from outfitter.gateway import Pins
    from outfitter.upstream import Pool, ProgramRegister


@dataclass(frozen=True, slots=True)
class Outfit:
    """A plan and its servers, each armed or with the reason why not."""

    plan: RunPlan
    servers: Mapping[str, ArmedServer | OutfitterError]


def plan_of(name: str, catalog: Catalog) -> RunPlan:
    """The plan of an agent, or of one server of the registry by itself."""
    if name in catalog.agents:
        return resolve(name, catalog)
    if name in catalog.servers:
        return resolve(Agent(name, servers={name: ServerRef(name)}), catalog)
    hint = suggest(name, {*catalog.agents, *catalog.servers})
    raise NotFound(f"no agent and no server '{name}'", hint=hint)


def arm_plan(
    plan: RunPlan, environment: Mapping[str, str], settings: Settings, runtime: Mapping[str, str] | None = None
) -> Outfit:
    """The plan's servers with this machine's variables and secrets; what one of them lacks stops that one alone.

    ``runtime`` is what is known of the run.
    """
    found = fetch_each(_wants(plan), environment, make_providers(environment, settings.secrets), runtime)
    return Outfit(plan, {**arm_each(plan, found.supply), **found.faults})


def _wants(plan: RunPlan) -> Iterator[Want]:
    for server in plan.servers.values():
        with suppress(UnresolvedPlaceholder):  # a malformed one is its server's own problem: arming tells it
            yield from server_wants(server)


def program_register(settings: Settings) -> ProgramRegister:
    """The approved programs of this catalog; another catalog's servers of the same name are others."""
    from outfitter.upstream import ProgramRegister

    return ProgramRegister(settings.of_catalog("programs"))


def make_pool(settings: Settings) -> Pool:
    """The pool of a process: it records what it starts, and starts only programs that stayed what they were."""
    from outfitter.upstream import Pool, ProcessJournal, SpawnRules

    rules = SpawnRules(programs=program_register(settings))
    return Pool(journal=ProcessJournal(settings.state / "processes"), rules=rules)


@dataclass(frozen=True, slots=True)
class LiveTools:
    """The tools that servers really have, as the agent may see them."""

    plan: RunPlan
    tools: Mapping[ToolKey, Mapping[str, JsonValue]]
    names: NameMap
    held: Mapping[ToolKey, Held] = field(default_factory=dict[ToolKey, Held])
    """Those that wait for a person."""

    @classmethod
    def of(cls, plan: RunPlan, listed: Mapping[str, list[dict[str, JsonValue]]], pins: Pins) -> LiveTools:
        """The tools that pass every gate and wait for nobody, under the names a model sees."""
        from outfitter.gateway import held_back

        tools: dict[ToolKey, Mapping[str, JsonValue]] = {}
        held: dict[ToolKey, Held] = {}
        for alias, found in listed.items():
            planned, named = plan.servers[alias], {str(tool.get("name")): tool for tool in found}
            waits = held_back(planned, plan.agent.name, partial(_definitions, found), pins)
            let_in = {name: tool for name, tool in named.items() if planned.allows(name) and name not in waits}
            for name, tool in let_in.items():
                override = planned.overrides.get(name)
                tools[ToolKey(alias, name)] = tool if override is None else apply_override(tool, override.value)
            held |= {ToolKey(alias, name): one for name, one in waits.items()}
        return cls(plan, tools, build_name_map((key, plan.servers[key.server].prefix) for key in tools), held)

    def find(self, name: str) -> ToolKey:
        """The tool that a shown name, ``server/tool`` or a tool's own name means; NotFound when none or several."""
        shown = self.names.keys.get(name)
        if shown is not None:
            return shown
        found = [key for key in self.tools if name in {key.tool, f"{key.server}/{key.tool}"}]
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFound(f"tool '{name}' is ambiguous", hint=f"say {' or '.join(self.names.shown[k] for k in found)}")
        for key, one in self.held.items():
            planned = self.plan.servers[key.server]
            if name in {key.tool, f"{key.server}/{key.tool}", f"{planned.prefix}_{key.tool}"}:
                hint = approval_of(pin_key(planned, self.plan.agent.name), one)
                raise NotFound(f"tool '{name}' is held back: {one.reason}", hint=hint)
        hint = suggest(name, self.names.keys)
        raise NotFound(f"agent '{self.plan.agent.name}' has no tool '{name}'", hint=hint)

    def check(self, key: ToolKey, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The arguments as they are sent; refuse a call that the agent's filters and rules refuse."""
        planned = self.plan.servers[key.server]
        override = planned.overrides.get(key.tool)
        if override is not None:
            if hidden := hidden_given(arguments, override.value):
                raise CallDenied(f"'{key.tool}' has no argument '{hidden[0]}'")
            arguments = complete_arguments(arguments, override.value)
        said = self.tools[key].get("annotations")
        decision = planned.decide(
            key.tool, arguments, read_only=isinstance(said, dict) and said.get("readOnlyHint") is True
        )
        if isinstance(decision, Deny):
            raise CallDenied(decision.reason)
        if isinstance(decision, Ask):
            hint = "at the gateway such a call waits for a person ('outfitter approvals')"
            raise CallDenied(f"{decision.reason}: a person must approve it", hint=hint)
        return dict(arguments)


def _definitions(listed: list[dict[str, JsonValue]]) -> list[Definition]:
    return [Definition.of_tool(tool) for tool in listed]
