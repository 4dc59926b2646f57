"""How the tools of a server and of an agent come before a model: pinned, searched for, or listed.

Choices only. Pins are kept and compared, and lists are searched, further up.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PinMode(StrEnum):
    """When a definition of a tool counts as approved."""

    FIRST_USE = "first_use"
    """As it was first seen; every change waits."""
    APPROVE = "approve"
    """Only when somebody has approved it."""
    OFF = "off"


class SearchMode(StrEnum):
    """Whether an agent searches its tools instead of having all of them listed."""

    NEVER = "never"
    AUTO = "auto"
    """When their definitions together are over its threshold."""
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class ToolSearch:
    """How an agent finds its tools; the threshold is in estimated tokens of definitions."""

    mode: SearchMode = SearchMode.NEVER
    threshold: int = 20_000


LISTED = ToolSearch()
