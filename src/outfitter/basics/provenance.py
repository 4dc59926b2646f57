"""Where a value came from, and what it overruled.

``Sourced`` is what the resolver returns, what explain prints, what the dashboard draws and what the tests assert.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Level(StrEnum):
    """The levels of the chain, in the order in which they speak. OUTFITTER is the framework itself."""

    OUTFITTER = "outfitter"
    REGISTRY = "registry"
    CAPABILITY = "capability"
    AGENT = "agent"
    RUN = "run"
    PARENT = "parent"


AUTHORED = frozenset({Level.OUTFITTER, Level.REGISTRY, Level.CAPABILITY, Level.AGENT})


@dataclass(frozen=True, slots=True)
class Origin:
    """One speaker in the chain: its level, its name, and the file or row it is written in."""

    level: Level
    name: str
    where: str = ""
    via: Origin | None = None

    @property
    def is_authored(self) -> bool:
        """Whether an operator wrote it, so that placeholders may stand in it."""
        return self.level in AUTHORED

    def __str__(self) -> str:
        """Say it in words: ``agent 'tester' (agents/tester.json)``."""
        if self.level is Level.OUTFITTER:
            return "Outfitter itself"
        place = f" ({self.where})" if self.where else ""
        inherited = f", which had it from {self.via}" if self.via else ""
        return f"{self.level.value} '{self.name}'{place}{inherited}"


@dataclass(frozen=True, slots=True)
class Overruled(Generic[T_co]):
    """A value that was asked for and did not stand, or not alone."""

    value: T_co
    origin: Origin


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T_co]):
    """A value, who gave it, whom it overruled (earliest first), and how it came about when that is not plain."""

    value: T_co
    origin: Origin
    overruled: tuple[Overruled[T_co], ...] = ()
    note: str = ""
