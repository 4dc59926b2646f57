"""How long and how much: a deadline that all calls share, and a budget that they spend together."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from outfitter.errors import Invalid


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment after which nothing more is begun."""

    expires_at: datetime

    def __post_init__(self) -> None:
        """Refuse a time without a zone: it would mean another moment on another machine."""
        if self.expires_at.tzinfo is None:
            raise Invalid("a deadline needs a time zone", hint="datetime.now(UTC) has one")

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline so many seconds from now."""
        return cls(datetime.now(UTC) + timedelta(seconds=seconds))

    def remaining(self, now: datetime | None = None) -> float:
        """The seconds that are left; zero when it has passed."""
        return max(0.0, (self.expires_at - (now or datetime.now(UTC))).total_seconds())


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be spent; None is no limit."""

    max_tool_calls: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_total_tokens: int | None = None
    deadline: Deadline | None = None


@dataclass(slots=True)
class BudgetTracker:
    """What was spent of a budget, counted exactly from any thread."""

    budget: Budget
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def spend_call(self) -> str | None:
        """Count one tool call; when the budget does not allow it, count nothing and say why."""
        with self._lock:
            limit = self.budget.max_tool_calls
            if limit is not None and self.tool_calls >= limit:
                return f"the budget of {limit} tool calls is spent"
            broken = self._broken()
            self.tool_calls += broken is None
        return broken

    def take_back_call(self) -> None:
        """One call that was counted is not made."""
        with self._lock:
            self.tool_calls -= 1

    def spend_tokens(self, input_tokens: int, output_tokens: int) -> str | None:
        """Count tokens that were used; say which limit they broke, if they did."""
        with self._lock:
            self.input_tokens += input_tokens
            self.output_tokens += output_tokens
            return self._broken()

    def _broken(self) -> str | None:
        limits = (
            ("input tokens", self.input_tokens, self.budget.max_input_tokens),
            ("output tokens", self.output_tokens, self.budget.max_output_tokens),
            ("tokens", self.input_tokens + self.output_tokens, self.budget.max_total_tokens),
        )
        broken = [f"{used} of {limit} {what}" for what, used, limit in limits if limit is not None and used > limit]
        return f"the budget is spent: {', '.join(broken)}" if broken else None
