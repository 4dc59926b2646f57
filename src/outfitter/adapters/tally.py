"""What an evaluation has used so far, and whether it may go on: the same for our own loop and for one of an SDK."""

from __future__ import annotations

from dataclasses import dataclass, field

from outfitter.adapters.outfit import Limits
from outfitter.adapters.response import StopReason, Usage


@dataclass(slots=True)
class Tally:
    """Counted between turns; within a call the limits are held by ``tools``."""

    limits: Limits
    max_rounds: int
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0

    def take(self, usage: Usage) -> None:
        """Count one turn of the model."""
        self.rounds += 1
        self.usage += usage
        if self.limits.budget is not None:
            self.limits.budget.spend_tokens(usage.input_tokens, usage.output_tokens)

    def reached(self) -> tuple[StopReason, str] | None:
        """Why nothing more may be begun; None when it may."""
        if self.limits.is_late:
            return StopReason.DEADLINE, "the deadline has passed"
        spent = self.limits.overspent()
        if spent is not None:
            return StopReason.BUDGET, spent
        if self.rounds >= self.max_rounds:
            return StopReason.ROUNDS, f"the model did not come to an end in {self.max_rounds} rounds"
        return None
