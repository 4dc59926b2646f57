"""How much an agent may use: calls, bytes and tokens, in a time or a run, of everything, one server or one tool.

The numbers only. Counting is ``storage`` and ``gateway``; what is said when one is used up is ``policy``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from outfitter.errors import InvalidFilter


class Measure(StrEnum):
    """What is counted."""

    CALLS = "calls"
    BYTES = "bytes"
    """Of arguments and result, as JSON text."""
    TOKENS = "tokens"
    """The same, estimated as a model would count it."""


class Period(StrEnum):
    """How long a count runs; a run's never begins anew."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Budget:
    """So much of one thing in one period: of everything, or of one server (its alias), or of one of its tools."""

    measure: Measure
    amount: int
    period: Period
    server: str = ""
    tool: str = ""

    def __post_init__(self) -> None:
        """Refuse a budget that nothing could be counted against."""
        if self.tool and not self.server:
            raise InvalidFilter(f"the budget of tool '{self.tool}' names no server", hint="write 'server/tool'")
        if self.amount < 0:
            raise InvalidFilter("a budget is not negative")

    @property
    def name(self) -> str:
        """How it is written: ``calls_per_day``."""
        return f"{self.measure.value}_per_{self.period.value}"

    @property
    def scope(self) -> str:
        """Of what: empty for everything, an alias, or ``alias/tool``."""
        return f"{self.server}/{self.tool}" if self.tool else self.server

    def covers(self, server: str, tool: str) -> bool:
        """Whether a call of this tool counts."""
        return self.server in {"", server} and self.tool in {"", tool}


@dataclass(frozen=True, slots=True)
class Budgets:
    """All limits of one agent; None is without limit."""

    concurrent_calls: int | None = None
    calls_per_second: float | None = None
    repeats: int | None = None
    """How often the same call with the same arguments may be made before it is held to be a loop."""
    limits: tuple[Budget, ...] = ()


NO_BUDGETS = Budgets()
