"""The three answers a policy can give, each with its reason. The lower rank wins where several are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from outfitter.catalog import ToolRule


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may go on."""

    allowed: ClassVar[bool] = True
    rank: ClassVar[int] = 2
    reason: str = ""
    rule: ToolRule | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not happen."""

    allowed: ClassVar[bool] = False
    rank: ClassVar[int] = 0
    reason: str
    rule: ToolRule | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must say yes first."""

    allowed: ClassVar[bool] = False
    rank: ClassVar[int] = 1
    reason: str
    rule: ToolRule | None = None


Decision: TypeAlias = Allow | Deny | Ask
