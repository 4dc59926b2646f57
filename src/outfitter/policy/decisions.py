"""The three answers a policy can give, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from outfitter.catalog import ToolRule


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may go on."""

    reason: str = ""
    rule: ToolRule | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not happen."""

    reason: str
    rule: ToolRule | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must say yes first."""

    reason: str
    rule: ToolRule | None = None


Decision: TypeAlias = Allow | Deny | Ask
