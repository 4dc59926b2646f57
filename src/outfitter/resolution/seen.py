"""What did a server last say of itself, and what do its tools cost an agent? Values only; ``storage`` keeps them.

A sighting is found again by the server's name and by what was asked, as it is written: no secret is part of it. It is
what the server said, whoever asked: filters, names and other words of a plan are laid over it anew each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from outfitter.calls import META_TOOLS, ToolJson, definition_tokens, total_tokens
from outfitter.catalog import JsonValue, SearchMode, ToolKey, ToolSearch, apply_override, build_name_map
from outfitter.resolution.explain import describe_target, show_value
from outfitter.resolution.pinning import pin_key
from outfitter.resolution.plan import PlannedServer, RunPlan

_MARK_LENGTH = 16


@dataclass(frozen=True, slots=True)
class SeenServer:
    """A server as it was last seen."""

    tools: tuple[dict[str, JsonValue], ...]
    capabilities: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    instructions: str = ""


Recall = Callable[[str], SeenServer | None]
"""Finds what was last seen, by the key of a server."""


def seen_key(planned: PlannedServer, agent: str) -> str:
    """Under which name a sighting is kept: servers that are asked for the same in the same words share it."""
    transport = planned.definition.value.transport
    headers = {name: show_value(header.value, sensitive=False) for name, header in planned.headers.items()}
    owner = "" if planned.definition.value.shareable else agent
    asked = [*describe_target(planned), getattr(transport, "cwd", None), sorted(headers.items()), owner]
    mark = hashlib.sha256(json.dumps(asked, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{pin_key(planned, agent)}.{mark[:_MARK_LENGTH]}"


@dataclass(frozen=True, slots=True)
class WeighedTool:
    """What the definition of one tool costs."""

    server: str
    name: str
    shown: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ToolWeights:
    """What the definitions of an agent's tools cost, the heaviest first."""

    agent: str
    search: ToolSearch
    tools: tuple[WeighedTool, ...]
    unseen: tuple[str, ...] = ()
    """Servers whose tools are not known."""

    @property
    def total(self) -> int:
        """All definitions together."""
        return sum(tool.tokens for tool in self.tools)

    @property
    def is_searched(self) -> bool:
        """Whether the agent searches its tools instead of reading all of them."""
        search = self.search
        return search.mode is SearchMode.ALWAYS or (search.mode is SearchMode.AUTO and self.total > search.threshold)

    @property
    def read(self) -> int:
        """What a model reads of them before its first word."""
        return total_tokens(META_TOOLS) if self.is_searched else self.total

    def to_json(self) -> dict[str, JsonValue]:
        """The weights as JSON values."""
        servers: dict[str, JsonValue] = {
            alias: sum(tool.tokens for tool in self.tools if tool.server == alias)
            for alias in dict.fromkeys(tool.server for tool in self.tools)
        }
        return {
            "agent": self.agent,
            "tool_search": {"mode": self.search.mode.value, "threshold": self.search.threshold},
            "searched": self.is_searched,
            "tokens": self.total,
            "tokens_read": self.read,
            "servers": servers,
            "unseen": list(self.unseen),
            "tools": [
                {"server": tool.server, "name": tool.name, "shown": tool.shown, "tokens": tool.tokens}
                for tool in self.tools
            ],
        }


def weigh(plan: RunPlan, seen: Mapping[str, Sequence[ToolJson] | None]) -> ToolWeights:
    """What the tools of these lists, by alias, cost the agent of a plan; None for a list that is not known."""
    entries: dict[ToolKey, ToolJson] = {}
    for alias, listed in seen.items():
        planned = plan.servers[alias]
        for entry in listed or ():
            name = str(entry.get("name"))
            if planned.allows(name):
                override = planned.overrides.get(name)
                laid = entry if override is None else apply_override({**entry}, override.value)
                entries.setdefault(ToolKey(alias, name), laid)
    shown = build_name_map((key, plan.servers[key.server].prefix) for key in entries).shown
    weighed = [
        WeighedTool(key.server, key.tool, shown[key], definition_tokens({**entry, "name": shown[key]}))
        for key, entry in entries.items()
    ]
    weighed.sort(key=lambda tool: (-tool.tokens, tool.shown))
    unseen = tuple(alias for alias, listed in seen.items() if listed is None)
    return ToolWeights(plan.agent.name, plan.agent.tool_search, tuple(weighed), unseen)


def weigh_seen(plan: RunPlan, recall: Recall) -> ToolWeights:
    """What an agent's tools cost, as each server was last seen."""
    found = {alias: recall(seen_key(planned, plan.agent.name)) for alias, planned in plan.servers.items()}
    return weigh(plan, {alias: None if seen is None else seen.tools for alias, seen in found.items()})
