"""In which state a server is, and how it gets from one to another: a table, and the numbers that go with it.

The table is what the code runs on and what the documents show. A state changes because something was tried: by a
request, or, while somebody listens to the server, by itself when it was lost and when its rest is over.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import StrEnum

from outfitter.errors import CommandForbidden, NeedsAuth, OutfitterError, UpstreamDown


class State(StrEnum):
    """What can be said of a server."""

    CONFIGURED = "configured"
    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    NEEDS_AUTH = "needs_auth"
    DOWN = "down"


class Happening(StrEnum):
    """What changes a state."""

    TRIED = "tried"
    OPENED = "opened"
    LOST = "lost"
    REFUSED = "refused"
    GAVE_UP = "gave_up"
    CLOSED = "closed"


TABLE: dict[State, dict[Happening, State]] = {
    State.CONFIGURED: {Happening.TRIED: State.STARTING},
    State.STARTING: {
        Happening.OPENED: State.READY,
        Happening.LOST: State.DEGRADED,
        Happening.REFUSED: State.NEEDS_AUTH,
        Happening.GAVE_UP: State.DOWN,
        Happening.CLOSED: State.CONFIGURED,
    },
    State.READY: {
        Happening.LOST: State.DEGRADED,
        Happening.REFUSED: State.NEEDS_AUTH,
        Happening.CLOSED: State.CONFIGURED,
    },
    State.DEGRADED: {
        Happening.TRIED: State.STARTING,
        Happening.GAVE_UP: State.DOWN,
        Happening.REFUSED: State.NEEDS_AUTH,
        Happening.CLOSED: State.CONFIGURED,
    },
    State.NEEDS_AUTH: {Happening.TRIED: State.STARTING, Happening.CLOSED: State.CONFIGURED},
    State.DOWN: {Happening.TRIED: State.STARTING, Happening.CLOSED: State.CONFIGURED},
}


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long: tries to connect, back-off between them, and rest after giving up."""

    tries: int = 3
    first_wait: float = 0.2
    longest_wait: float = 5.0
    cooldown: float = 60.0

    def wait_before(self, attempt: int, dice: random.Random) -> float:
        """Seconds before this attempt (from 0), doubling, with jitter so that many do not come back at once."""
        if attempt == 0:
            return 0.0
        full = min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)
        return full * (0.5 + dice.random() / 2)


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a server at a time, with the last error in words."""

    state: State = State.CONFIGURED
    since: float = 0.0
    last_error: OutfitterError | None = None
    retry_at: float = 0.0

    def after(self, happening: Happening, now: float, error: OutfitterError | None = None) -> Health:
        """The health after something happened; what the table does not know leaves it as it is."""
        state = TABLE[self.state].get(happening, self.state)
        if state is State.READY:
            return Health(state, now)
        since = self.since if state is self.state else now
        return replace(self, state=state, since=since, last_error=error or self.last_error)

    def resting(self, now: float, cooldown: float) -> Health:
        """The same, not to be tried again before the rest is over."""
        return replace(self, retry_at=now + cooldown)

    def refusal(self, now: float, where: str) -> OutfitterError | None:
        """The error for a request while the server rests; None when it may be tried."""
        left = self.rest_left(now)
        if left <= 0:
            return None
        if isinstance(self.last_error, CommandForbidden):
            # Nothing is down: somebody must say yes first.
            return type(self.last_error)(self.last_error.message, where=where, hint=self.last_error.hint)
        said = self.last_error.message if self.last_error else "it failed"
        message = f"not available: {said}; it is tried again in {left:.0f} s"
        if self.state is not State.NEEDS_AUTH:
            return UpstreamDown(message, retry_after=left, where=where, reason=said)
        refused = NeedsAuth(message, where=where)
        refused.retry_after = left
        return refused

    def rest_left(self, now: float) -> float:
        """Seconds until the server is tried again; 0 when the next request tries it."""
        return max(0.0, self.retry_at - now) if self.state in {State.DOWN, State.NEEDS_AUTH} else 0.0
