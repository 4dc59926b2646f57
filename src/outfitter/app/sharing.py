"""What one worker of several grants an agent: its share of the limits, so that all together grant no more.

Each worker counts for itself. An agent whose connections all came to one worker has that worker's share only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from outfitter.resolution import RunPlan


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one worker; the only one has everything."""

    number: int = 0
    count: int = 1

    def of_calls(self, most: int) -> int:
        """Its calls at a time: all shares together are what there is, but nobody has less than one."""
        return max(1, most // self.count + (self.number < most % self.count))

    def of_rate(self, rate: float) -> float:
        """Its calls per second."""
        return rate / self.count

    def of_plan(self, plan: RunPlan) -> RunPlan:
        """A plan with the share of its agent's own limits."""
        own = plan.agent.budgets
        most = None if own.concurrent_calls is None else self.of_calls(own.concurrent_calls)
        rate = None if own.calls_per_second is None else self.of_rate(own.calls_per_second)
        shared = replace(own, concurrent_calls=most, calls_per_second=rate)
        return plan if shared == own else replace(plan, agent=replace(plan.agent, budgets=shared))


ALONE = Share()
