"""Which tools of a server are meant, and which calls a rule speaks about.

One filter for every dialect. Judging a call by the rules is ``policy``; intersecting filters over levels is
``resolution``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from outfitter.basics import quote
from outfitter.errors import InvalidFilter

_MAX_PATTERN = 256


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Names and globs: absent include = all, ``("*",)`` = all, ``()`` = none; exclude is applied after include."""

    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse patterns that can match no tool name."""
        check_patterns(self.include or ())
        check_patterns(self.exclude)

    @property
    def is_open(self) -> bool:
        """Whether it lets every tool through."""
        return not self.exclude and (self.include is None or "*" in self.include)

    def allows(self, tool: str) -> bool:
        """Whether the tool passes."""
        return self.fault(tool) is None

    def fault(self, tool: str) -> str | None:
        """Why the tool does not pass, in words; None when it passes."""
        if self.include is not None and first_match(self.include, tool) is None:
            return (
                f"not in its include list [{', '.join(self.include)}]" if self.include else "its include list is empty"
            )
        excluded = first_match(self.exclude, tool)
        return None if excluded is None else f"excluded by '{excluded}'"

    def select(self, tools: Iterable[str]) -> tuple[str, ...]:
        """The tools that pass, in the order given: an include list for SDKs that know nothing else."""
        return tuple(tool for tool in tools if self.fault(tool) is None)


def first_match(patterns: Iterable[str], tool: str) -> str | None:
    """The first pattern that matches the tool name, case-sensitively; None when none does."""
    for pattern in patterns:
        if pattern in {tool, "*"} or fnmatchcase(tool, pattern):
            return pattern
    return None


def check_patterns(patterns: Iterable[str]) -> None:
    """Refuse patterns that no tool name could match."""
    for pattern in patterns:
        if not pattern or len(pattern) > _MAX_PATTERN or not pattern.isprintable() or pattern.strip() != pattern:
            raise InvalidFilter(
                f"invalid tool pattern {quote(pattern)}", hint="write a tool name or a glob such as 'get_*'"
            )


ALL_TOOLS = ToolFilter()


class Effect(StrEnum):
    """What a rule says about the calls it matches."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A rule about calls: which servers and tools, under which conditions on arguments, and what then holds.

    Conditions map a JSON pointer into the arguments (``/path``, ``/files/*/path``) to globs; all must hold. Where a
    pointer finds several values, an allow rule needs every one to match, a deny or ask rule only one. Deny beats ask
    beats allow. Once an allow rule with conditions speaks of a tool, a call that meets none is refused.
    """

    tools: tuple[str, ...]
    effect: Effect = Effect.ALLOW
    server: str = "*"
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    reason: str = ""
    unless_read_only: bool = False
    """Not about tools that only read, by the word of a server that is trusted."""

    def __post_init__(self) -> None:
        """Refuse rules that could never match or say nothing."""
        if not self.tools:
            raise InvalidFilter("a rule needs at least one tool name or glob")
        if self.unless_read_only and self.effect is Effect.ALLOW:
            raise InvalidFilter("unless_read_only belongs to rules that deny or ask")
        check_patterns((*self.tools, self.server))
        for pointer, globs in self.arguments.items():
            if not pointer.startswith("/"):
                raise InvalidFilter(f"{quote(pointer)} is not a JSON pointer", hint="start it with '/', as in '/path'")
            if not globs:
                raise InvalidFilter(f"the condition on {quote(pointer)} has no pattern")

    def speaks_of(self, server: str, tool: str) -> bool:
        """Whether the rule is about this tool at all."""
        return self.speaks_of_server(server) and first_match(self.tools, tool) is not None

    def speaks_of_server(self, server: str) -> bool:
        """Whether the rule is about any tool of this server."""
        return first_match((self.server,), server) is not None
