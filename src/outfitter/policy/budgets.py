"""What is said when a budget is used up, which window of time a moment is in, and under which key something is counted.

Pure values. Counting is ``metering``; what a budget is, ``catalog``. The windows are those of the clock in UTC: a day
begins at midnight. A run has one window, which never ends.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from outfitter.catalog import Budget, Budgets, JsonValue, Period

EXCEEDED, LOOP = "budget_exceeded", "loop"
"""The codes of a call that is refused because of its agent's budgets."""
REPEATS = "repeats"
ROW_SECONDS = 600
"""How long a row of equal calls is remembered after the first of them."""
SECONDS = {Period.MINUTE: 60, Period.HOUR: 3600, Period.DAY: 86400}
_KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not made: which budget, how much of how much, and when it makes sense to ask again."""

    budget: str
    """As it is written: ``calls_per_day``, or ``repeats``."""
    used: int
    limit: int
    scope: str = ""
    """Of what: empty for everything, an alias, or ``alias/tool``."""
    owner: str = ""
    """Whose it is, in words."""
    resets_at: float | None = None
    """Seconds since 1970; None when it never begins anew."""
    seconds: int | None = None
    """How long that is from now."""

    @property
    def code(self) -> str:
        """What programs know it by."""
        return LOOP if self.budget == REPEATS else EXCEEDED

    @property
    def text(self) -> str:
        """What the model is told."""
        if self.budget == REPEATS:
            return (
                f"this is a loop: the same call with the same arguments was made {self.used} times in a row, and "
                f"{self.limit} are allowed; do something else, or say what you are missing"
            )
        what = self.budget.partition("_")[0]
        of = f" for {self.scope}" if self.scope else ""
        whose = f" of {self.owner}" if self.owner else ""
        told = f"the budget {self.budget}{of}{whose} is used up: {self.used} of {self.limit} {what}"
        if self.resets_at is None:
            return f"{told}; the budget of a run does not begin anew"
        return f"{told}; it begins anew at {tell_moment(self.resets_at)}, in {self.seconds} seconds"

    @property
    def data(self) -> dict[str, JsonValue]:
        """What programs are told."""
        found: dict[str, JsonValue] = {"budget": self.budget, "used": self.used, "limit": self.limit}
        if self.scope:
            found["scope"] = self.scope
        if self.resets_at is not None:
            found |= {"resetsAt": tell_moment(self.resets_at), "retryAfter": self.seconds}
        return found


@dataclass(frozen=True, slots=True)
class Counter:
    """One budget of one owner: what is counted, and under which key."""

    budget: Budget
    key: bytes
    owner: str

    def refusal(self, used: int, now: float) -> Refusal:
        """The refusal of a call that finds it used up."""
        budget, ends = self.budget, ends_at(self.budget.period, now)
        seconds = None if ends is None else max(1, math.ceil(ends - now))
        return Refusal(budget.name, used, budget.amount, budget.scope, self.owner, ends, seconds)


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays: an agent, and the run it works in, if it works in one."""

    agent: str
    run: str = ""

    @property
    def owner(self) -> str:
        """In words."""
        return f"agent '{self.agent}'" if self.agent else ""

    @property
    def row_key(self) -> bytes:
        """Under which its row of equal calls is counted: each run has its own."""
        return key_of(REPEATS, self.agent, self.run)

    def counters(self, limits: Iterable[Budget]) -> tuple[Counter, ...]:
        """Where these budgets are counted; those of a run only when there is one."""
        return tuple(
            Counter(budget, self._key(budget), f"run '{self.run}'" if budget.period is Period.RUN else self.owner)
            for budget in limits
            if budget.period is not Period.RUN or self.run
        )

    def _key(self, budget: Budget) -> bytes:
        # A run's budget is counted by run, so that the runs of its children can count there too.
        whose = ("run", self.run) if budget.period is Period.RUN else ("agent", self.agent)
        return key_of(*whose, budget.name, budget.server, budget.tool)


@dataclass(frozen=True, slots=True)
class BudgetState:
    """How far one budget is used now."""

    budget: str
    used: int | None
    """None for the budget of a run when no run was named."""
    limit: int
    scope: str = ""
    run: str = ""
    resets_at: float | None = None
    key: bytes = field(default=b"", repr=False)

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        if self.used is None:
            return 0.0
        return min(1.0, self.used / self.limit) if self.limit else 1.0


def describe_state(state: BudgetState) -> dict[str, JsonValue]:
    """A state for programs."""
    resets = None if state.resets_at is None else tell_moment(state.resets_at)
    return {
        "budget": state.budget,
        "scope": state.scope,
        "run": state.run,
        "used": state.used,
        "limit": state.limit,
        "resets_at": resets,
    }


def covering(budgets: Budgets, server: str, tool: str) -> tuple[Budget, ...]:
    """The budgets that a call of this tool counts against."""
    return tuple(budget for budget in budgets.limits if budget.covers(server, tool))


def key_of(*parts: str) -> bytes:
    """Sixteen bytes that stand for these words and no others."""
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_KEY_BYTES).digest()


def window_of(period: Period, now: float) -> int:
    """The number of the window that a moment is in; a run has only one."""
    return 1 if period is Period.RUN else int(now // SECONDS[period])


def ends_at(period: Period, now: float) -> float | None:
    """When the window of a moment ends, in seconds since 1970; None when it never does."""
    return None if period is Period.RUN else float((window_of(period, now) + 1) * SECONDS[period])


def tell_moment(seconds: float) -> str:
    """A moment as people and programs read it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
