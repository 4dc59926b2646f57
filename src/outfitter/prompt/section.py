"""One part of a prompt: its text, and the tools, servers and policies that come with it.

A section says what it contributes; whether and how it is shown is ``rendering``. Subclasses give the text:
``MarkdownSection`` from a template, ``bridge.McpIntegrationSection`` from live servers.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic, Protocol, Self, TypedDict, TypeVar, Unpack, cast

from outfitter.basics import quote
from outfitter.catalog import MCPServer
from outfitter.errors import PromptValidationError
from outfitter.policy import ToolPolicy
from outfitter.prompt.params import declared_argument
from outfitter.tools import Tool

P = TypeVar("P")
T_co = TypeVar("T_co", covariant=True)
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)


class SectionVisibility(StrEnum):
    """Whether a section is shown whole, or only told of."""

    FULL = "full"
    SUMMARY = "summary"


class _AsksSession(Protocol[T_co]):
    def __call__(self, *, session: Any) -> T_co: ...  # noqa: ANN401 - a Session, or None when rendering has none


class _AsksBoth(Protocol[T_co]):
    def __call__(self, params: Any, /, *, session: Any) -> T_co: ...  # noqa: ANN401 - the section's own parameters


Selector = Callable[[Any], T_co] | Callable[[], T_co] | _AsksSession[T_co] | _AsksBoth[T_co]
VisibilitySelector = SectionVisibility | Selector[SectionVisibility]
EnabledPredicate = Selector[bool]


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
    tool_search: bool
    """Its tools are searched instead of listed, also while it is only told of, as far as they are known."""


class Section(Generic[P]):
    """A part of a prompt. ``Section[Params]`` says which dataclass its text, predicates and servers read."""

    def __init__(self, *, title: str, key: str, **options: Unpack[SectionOptions]) -> None:
        """Check what can be checked before anything is rendered."""
        self._equip(title, key, options)

    def _equip(self, title: str, key: str, options: SectionOptions) -> None:
        _refuse_unknown(options, key)
        self.title = title
        self.key = check_key(key, "section key")
        self.default_params: P | None = options.get("default_params")
        self.children: tuple[Section[Any], ...] = tuple(options.get("children") or ())
        self.enabled = options.get("enabled")
        self.accepts_overrides = options.get("accepts_overrides", True)
        self.summary = options.get("summary")
        self.visibility: VisibilitySelector = options.get("visibility", SectionVisibility.FULL)
        self.tool_search = options.get("tool_search", False)
        self._tools = tuple(options.get("tools") or ())
        self._mcps = _check_servers(options.get("mcps") or (), key)
        self._policies = tuple(options.get("policies") or ())
        self._check()

    def _check(self) -> None:
        if not self.title.strip() or not self.title.isprintable():
            raise PromptValidationError(f"section '{self.key}' needs a title on one line")
        if self.visibility == SectionVisibility.SUMMARY and not self.summary:
            message = f"section '{self.key}' is shown as its summary and has none"
            raise PromptValidationError(message, hint="give summary='…'")
        for tool in self._tools:
            if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
                raise TypeError("Section tools must be Tool instances.")

    @property
    def params_type(self) -> type | None:
        """The dataclass it reads; None when it takes no parameters."""
        declared = declared_argument(self)
        if declared is not Any and isinstance(declared, type):
            return None if declared is type(None) else declared
        return None if self.default_params is None else type(self.default_params)

    @property
    def source_text(self) -> str | None:
        """The text with its ``$field`` left open, which an override may replace; None when it has no such text."""
        return None

    @property
    def brings_tools(self) -> bool:
        """Whether it has tools or servers, said without connecting to anything."""
        return redefines(self, "tools", "mcps") or bool(self._tools or self._mcps)

    def tools(self) -> tuple[Tool[Any, Any], ...]:
        """The tools it brings."""
        return self._tools

    def searched(self) -> tuple[Tool[Any, Any], ...]:
        """Those of its tools that are searched instead of listed."""
        return self.tools() if self.tool_search else ()

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

    def clone(self, **changes: object) -> Self:
        """Another section like this one, with clones of its children and these arguments changed."""
        fresh = copy.copy(self)
        children = [child.clone() for child in self.children]
        options: SectionOptions = {
            "default_params": self.default_params,
            "children": children,
            "enabled": self.enabled,
            "tools": self._tools,
            "mcps": self._mcps,
            "policies": self._policies,
            "accepts_overrides": self.accepts_overrides,
            "summary": self.summary,
            "visibility": self.visibility,
            "tool_search": self.tool_search,
        }
        title, key = str(changes.pop("title", self.title)), str(changes.pop("key", self.key))
        changed = cast("SectionOptions", {**options, **changes})
        fresh._equip(title, key, changed)  # noqa: SLF001 - the clone is of this class
        return fresh


def redefines(section: Section[Any], *methods: str) -> bool:
    """Whether the section's class says by itself what these methods give, so that asking may cost something."""
    return any(getattr(type(section), name) is not getattr(Section, name) for name in methods)


def check_key(key: str, what: str) -> str:
    """The key itself if it may be one; PromptValidationError otherwise."""
    if _KEY.fullmatch(key) is None:
        hint = "use lower-case letters, digits, '.', '_' and '-', start with a letter or digit, at most 64 characters"
        raise PromptValidationError(f"{what} {quote(key)} is not valid", hint=hint)
    return key


def _refuse_unknown(options: Mapping[str, object], key: str) -> None:
    unknown = options.keys() - SectionOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"section {quote(key)} got unknown arguments: {', '.join(sorted(unknown))}")


def _check_servers(servers: Sequence[MCPServer], key: str) -> tuple[MCPServer, ...]:
    names: set[str] = set()
    for server in servers:
        if not isinstance(server, MCPServer):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise TypeError("Section mcps must be MCPServer instances.")
        if server.name in names:
            raise PromptValidationError(f"section {quote(key)} declares server '{server.name}' twice")
        names.add(server.name)
    return tuple(servers)
