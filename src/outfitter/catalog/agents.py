"""Who uses servers: agents and capabilities, and how each points at a server.

A pointer is keyed by an alias. It is a ``ServerRef`` (to a registry entry, or bare, refining an alias that a
capability introduced) or an ``InlineServer`` (the older form, with the definition repeated in place).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from outfitter.basics import check_agent_name, check_server_name
from outfitter.catalog.budgets import NO_BUDGETS, Budgets
from outfitter.catalog.executors import Executor
from outfitter.catalog.headers import HeaderSettings, check_settings
from outfitter.catalog.overrides import ToolOverride
from outfitter.catalog.presence import LISTED, ToolSearch
from outfitter.catalog.servers import MCPServer
from outfitter.catalog.tools import ALL_TOOLS, ToolFilter, ToolRule
from outfitter.errors import InvalidServer


@dataclass(frozen=True, slots=True)
class ServerRef:
    """A pointer to a registry entry, with what this level says about its headers and tools."""

    ref: str | None = None
    headers: HeaderSettings = field(default_factory=dict[str, str], repr=False)
    tools: ToolFilter = ALL_TOOLS
    overrides: Mapping[str, ToolOverride] = field(default_factory=dict[str, ToolOverride])

    def __post_init__(self) -> None:
        """Refuse headers that could never be sent."""
        if self.headers:
            check_settings(self.headers, "headers")


@dataclass(frozen=True, slots=True)
class InlineServer:
    """A definition written in place instead of a ref; its filter stands in the definition."""

    server: MCPServer
    headers: HeaderSettings = field(default_factory=dict[str, str], repr=False)
    overrides: Mapping[str, ToolOverride] = field(default_factory=dict[str, ToolOverride])

    def __post_init__(self) -> None:
        """Refuse headers that could never be sent."""
        if self.headers and self.server.remote is None:
            raise InvalidServer("a stdio server takes no headers", hint="pass values in env")
        check_settings(self.headers, "headers")


ServerUse: TypeAlias = ServerRef | InlineServer
ServerUses: TypeAlias = Mapping[str, ServerUse]


def _check_aliases(uses: ServerUses, where: str) -> None:
    for alias in uses:
        check_server_name(alias, what="alias", where=where)


@dataclass(frozen=True, slots=True)
class Capability:
    """A reusable bundle: prompt text and server refs."""

    name: str
    description: str = ""
    text: str = ""
    servers: ServerUses = field(default_factory=dict[str, ServerUse])
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Refuse names that cannot be used."""
        check_agent_name(self.name, what="capability name", where=self.source)
        _check_aliases(self.servers, self.source)


@dataclass(frozen=True, slots=True)
class RecordRule:
    """What the records of an agent's calls hold besides who, what, when and the outcome; secrets are masked there."""

    arguments: bool = False
    results: bool = False


NOTHING_KEPT = RecordRule()


@dataclass(frozen=True, slots=True)
class Agent:
    """A blueprint: who the agent is, what it may use, and by which rules."""

    name: str
    description: str = ""
    role: str = ""
    system_prompt: str = ""
    system_prompt_file: str | None = None
    capabilities: tuple[str, ...] = ()
    servers: ServerUses = field(default_factory=dict[str, ServerUse])
    rules: tuple[ToolRule, ...] = ()
    budgets: Budgets = NO_BUDGETS
    tool_search: ToolSearch = LISTED
    result_limit: int | None = None
    """Bytes; a result above it is kept aside, and the model gets a preview."""
    records: RecordRule = NOTHING_KEPT
    client_approvals: bool = False
    """Whether the person at its client may approve calls that a rule asks about."""
    executor: Executor | None = None
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Refuse names that cannot be used."""
        check_agent_name(self.name, where=self.source)
        _check_aliases(self.servers, self.source)
