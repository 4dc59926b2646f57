"""Not too much at once: each agent has its share of calls."""

from __future__ import annotations

from dataclasses import dataclass

from outfitter.gateway.asked import Asked, Next
from outfitter.gateway.limits import Turnstile
from outfitter.upstream import Message


@dataclass(frozen=True, slots=True)
class Limiting:
    """Counts the call in and out."""

    turnstile: Turnstile

    async def __call__(self, asked: Asked, go_on: Next) -> Message:
        """Refuse a call that is one too many."""
        with self.turnstile.passing(asked.view.seat.plan):
            return await go_on(asked)
