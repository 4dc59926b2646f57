"""Where the calls of each agent are counted against its budgets, in both lanes: which counters a call of a tool has.

A run counts against its own budgets and against those of the runs that it stands below. What a meter does is
``policy``; who keeps the counts is ``storage``; what a model hears is the step ``spending``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from outfitter.catalog import Period
from outfitter.gateway.metrics import Metrics
from outfitter.gateway.seats import Seat
from outfitter.policy import Ledger, Meter, Payer, Refusal, covering
from outfitter.storage import BudgetBook


class Accounts(Protocol):
    """Who counts."""

    def meter_of(self, seat: Seat, server: str, tool: str) -> Meter | None:
        """Where a call of this tool is counted; None when no budget speaks of it."""
        ...

    def note_refusal(self, agent: str, refusal: Refusal) -> None:
        """A call was refused."""
        ...


@dataclass(frozen=True, slots=True)
class _Uncounted:
    """Nobody counts, so nothing is used up."""

    def meter_of(self, seat: Seat, server: str, tool: str) -> None:
        """None."""
        del seat, server, tool

    def note_refusal(self, agent: str, refusal: Refusal) -> None:
        """Never."""
        del agent, refusal


UNCOUNTED: Accounts = _Uncounted()


@dataclass(frozen=True, slots=True)
class LedgerAccounts:
    """Counts in a ledger."""

    ledger: Ledger
    clock: Callable[[], float] = time.time
    book: BudgetBook | None = None
    """The same ledger as people see it, where it is a file."""
    refusals: Counter[tuple[str, ...]] = field(default_factory=Counter[tuple[str, ...]])
    """By agent and budget, since this process began."""

    def meter_of(self, seat: Seat, server: str, tool: str) -> Meter | None:
        """Where a call of this tool is counted; None when no budget speaks of it."""
        budgets, payer = seat.plan.agent.budgets, payer_of(seat)
        counters = payer.counters(covering(budgets, server, tool))
        for run, above in seat.above:
            limits = [budget for budget in covering(above, server, tool) if budget.period is Period.RUN]
            counters += Payer("", run).counters(limits)
        row = None if budgets.repeats is None else (payer.row_key, f"{server}/{tool}", budgets.repeats)
        return Meter(self.ledger, counters, row, self.clock) if counters or row else None

    def note_refusal(self, agent: str, refusal: Refusal) -> None:
        """Count it for whoever reads the figures."""
        self.refusals[agent, refusal.budget, refusal.scope] += 1

    def show_in(self, metrics: Metrics) -> None:
        """Have the refusals among the figures."""
        told = "Calls refused because a budget was used up, by agent, budget and what it is for."
        metrics.counters["outfitter_budget_refusals_total"] = (
            told, ("agent", "budget", "scope"), lambda: dict(self.refusals)
        )  # fmt: skip


def payer_of(seat: Seat) -> Payer:
    """Who pays for the calls of a seat."""
    return Payer(seat.agent, (seat.plan.run_id or "") if seat.run else "")
