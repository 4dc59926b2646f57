"""One part of a prompt: its text, and the tools, servers and policies that come with it.

A section says what it contributes; whether and how it is shown is ``rendering``. Subclasses give the text:
``MarkdownSection`` from a template, ``bridge.McpIntegrationSection`` from live servers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic, TypedDict, TypeVar, Unpack, get_args

from outfitter.basics import quote
from outfitter.catalog import MCPServer
from outfitter.errors import PromptValidationError
from outfitter.policy import ToolPolicy
from outfitter.tools import Tool

P = TypeVar("P")


class SectionVisibility(StrEnum):
    """Whether a section is shown whole, or only told of."""

    FULL = "full"
    SUMMARY = "summary"


VisibilitySelector = SectionVisibility | Callable[..., SectionVisibility]
EnabledPredicate = Callable[..., bool]


class SectionOptions(TypedDict, total=False):
    """What every section takes besides its title and key."""

    default_params: Any
    children: Sequence[Section[Any]] | None
    enabled: EnabledPredicate | None
    tools: Sequence[Tool[Any, Any]] | None
    mcps: Sequence[MCPServer] | None
    policies: Sequence[ToolPolicy] | None
    accepts_overrides: bool
    summary: str | None
    visibility: VisibilitySelector


class Section(Generic[P]):
    """A part of a prompt. ``Section[Params]`` says which dataclass its text, predicates and servers read."""

    def __init__(self, *, title: str, key: str, **options: Unpack[SectionOptions]) -> None:
        """Check what can be checked before anything is rendered."""
        self.title = title
        self.key = key
        self.default_params: P | None = options.get("default_params")
        self.children: tuple[Section[Any], ...] = tuple(options.get("children") or ())
        self.enabled = options.get("enabled")
        self.accepts_overrides = options.get("accepts_overrides", True)
        self.summary = options.get("summary")
        self.visibility: VisibilitySelector = options.get("visibility", SectionVisibility.FULL)
        self._tools = tuple(options.get("tools") or ())
        self._mcps = _check_servers(options.get("mcps") or (), key)
        self._policies = tuple(options.get("policies") or ())

    @property
    def params_type(self) -> type | None:
        """The dataclass it reads; None when it takes no parameters."""
        declared = get_args(getattr(self, "__orig_class__", None))
        if declared and isinstance(declared[0], type):
            return None if declared[0] is type(None) else declared[0]
        return None if self.default_params is None else type(self.default_params)

    def tools(self) -> tuple[Tool[Any, Any], ...]:
        """The tools it brings."""
        return self._tools

    def mcps(self) -> tuple[MCPServer, ...]:
        """The MCP servers it declares."""
        return self._mcps

    def policies(self) -> tuple[ToolPolicy, ...]:
        """The policies that hold for every tool of a prompt with this section."""
        return self._policies

    def resources(self) -> Mapping[type, object]:
        """What handlers find in ``context.resources`` because of this section."""
        return {}

    def render_body(self, params: P | None) -> str:
        """The text below its heading, shown whole."""
        raise NotImplementedError(f"{type(self).__name__} has no text", params)


def _check_servers(servers: Sequence[MCPServer], key: str) -> tuple[MCPServer, ...]:
    names: set[str] = set()
    for server in servers:
        if not isinstance(server, MCPServer):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise TypeError("Section mcps must be MCPServer instances.")
        if server.name in names:
            raise PromptValidationError(f"section {quote(key)} declares server '{server.name}' twice")
        names.add(server.name)
    return tuple(servers)
