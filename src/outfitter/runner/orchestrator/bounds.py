"""Which agent may be started below which: how deep, how often the same one, how many. Pure.

An agent that starts itself would do so for ever; one that starts another that starts it again, too. Neighbour: the
coordinator has a depth of its own that nobody gets past.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outfitter.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a runner lets its agents do."""

    deepest: int = 5
    """How many agents may stand in a row, the first one included."""
    same_agent: int = 1
    """How often one agent may stand in such a row."""
    most_children: int = 64
    """How many sessions one session may start in all."""

    def fault(self, chain: Sequence[str], agent: str) -> str | None:
        """Why an agent may not be started below those of the chain, the topmost first; None when it may."""
        row = " → ".join((*chain, agent))
        if list(chain).count(agent) >= self.same_agent:
            return f"agent '{agent}' stands above itself already: {row}"
        if len(chain) >= self.deepest:
            return f"at most {self.deepest} agents may stand in a row: {row}"
        return None

    def check(self, chain: Sequence[str], agent: str) -> None:
        """Refuse an agent that would stand too deep, or below itself: Forbidden."""
        fault = self.fault(chain, agent)
        if fault is not None:
            raise Forbidden(fault, hint="do the work yourself, or start another agent")

    def check_children(self, count: int) -> None:
        """Refuse one more when a session has started as many as it may: Forbidden."""
        if count >= self.most_children:
            hint = "go on with one of them: resume_agent"
            raise Forbidden(f"a session starts at most {self.most_children} others", hint=hint)


BOUNDS = Bounds()
"""What holds unless a runner is told otherwise."""
