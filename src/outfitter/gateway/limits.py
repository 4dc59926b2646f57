"""How much one agent may ask: calls at a time, and calls per second.

The numbers are the agent's budgets ``concurrent_calls`` and ``calls_per_second``; an agent without them has the
gateway's own. A call over the limit is refused before it is judged, with the time after which to try again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from outfitter.gateway.faults import Rejected
from outfitter.resolution import RunPlan
from outfitter.upstream import BEGUN

TOO_MANY = -31997
OVERLOADED = -31996
_SOON = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What one agent may do; None is without limit."""

    concurrent_calls: int | None = 256
    calls_per_second: float | None = None

    def of(self, plan: RunPlan) -> Limits:
        """These limits with the agent's own in their place."""
        budgets = plan.agent.budgets
        most, rate = budgets.concurrent_calls, budgets.calls_per_second
        return Limits(self.concurrent_calls if most is None else most, self.calls_per_second if rate is None else rate)


@dataclass(slots=True, eq=False)
class Use:
    """What an agent has asked lately."""

    under_way: int = 0
    tokens: float = 0.0
    filled: float = float("-inf")


@dataclass(slots=True)
class Turnstile:
    """Counts the calls of every agent. ``most_memory`` is bytes; above it no new work is taken."""

    limits: Limits = field(default_factory=Limits)
    most_memory: int | None = None
    clock: Callable[[], float] = time.monotonic
    memory: Callable[[], int] = field(default_factory=lambda: _resident)
    is_closing: bool = False
    _uses: dict[str, Use] = field(default_factory=dict[str, Use])
    _looked: float = float("-inf")
    _is_full: bool = False

    @property
    def under_way(self) -> int:
        """How many calls have begun and not ended."""
        return sum(use.under_way for use in self._uses.values())

    def wait_of(self, plan: RunPlan) -> float | None:
        """Seconds after which the agent may call again; None when it may now. Counts nothing."""
        if _is_inside():
            return None
        limits, use = self.limits.of(plan), self._use(plan)
        if limits.concurrent_calls is not None and use.under_way >= limits.concurrent_calls:
            return _SOON
        if limits.calls_per_second is not None:
            self._fill(use, limits.calls_per_second)
            if use.tokens < 1.0:
                return (1.0 - use.tokens) / limits.calls_per_second
        return None

    def is_overloaded(self) -> bool:
        """Whether no new work is taken: the gateway ends, or its memory is nearly used up."""
        if self.most_memory is not None and self.clock() - self._looked > _SOON:
            self._looked, self._is_full = self.clock(), self.memory() > self.most_memory
        return (self.is_closing or self._is_full) and not _is_inside()

    def use_of(self, plan: RunPlan) -> tuple[Use, int] | None:
        """Where the calls of an agent are counted, and how many there may be; None when they are timed as well."""
        limits = self.limits.of(plan)
        if limits.calls_per_second is not None:
            return None
        return self._use(plan), sys.maxsize if limits.concurrent_calls is None else limits.concurrent_calls

    def enter(self, plan: RunPlan) -> None:
        """Count a call in; Rejected when it is one too many. Each ``enter`` has its ``leave``."""
        if self.is_overloaded():
            data = {"code": "overloaded", "retryAfter": _SOON}
            raise Rejected("the gateway takes no new calls now", rpc_code=OVERLOADED, status=503, data=data)
        wait = self.wait_of(plan)
        if wait is not None:
            data = {"code": "too_many_calls", "retryAfter": round(wait, 3)}
            told = f"agent '{plan.agent.name}' has too many calls; try again in {wait:.2f} s"
            raise Rejected(told, rpc_code=TOO_MANY, status=429, data=data)
        use = self._use(plan)
        use.under_way += 1
        use.tokens -= 1.0

    def leave(self, plan: RunPlan) -> None:
        """Count a call out."""
        self._use(plan).under_way -= 1

    @contextmanager
    def passing(self, plan: RunPlan) -> Generator[None]:
        """Count a call in and out again, unless it is counted already."""
        if _is_inside():
            yield
            return
        self.enter(plan)
        try:
            yield
        finally:
            self.leave(plan)

    def _use(self, plan: RunPlan) -> Use:
        name = plan.agent.name
        use = self._uses.get(name)
        if use is None:
            use = self._uses[name] = Use()
        return use

    def _fill(self, use: Use, rate: float) -> None:
        """Give back what time has given: at most what one second holds, and never less than one call."""
        now = self.clock()
        use.tokens = min(max(rate, 1.0), max(use.tokens, 0.0) + (now - use.filled) * rate)
        use.filled = now


def _is_inside() -> bool:
    """Whether the fast lane has counted this call in: it was sent, and only its answer is waited for."""
    return BEGUN.get() is not None


def _resident() -> int:
    """The memory of this process, in bytes; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - read once a second, as cheaply as it goes
            import os

            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
