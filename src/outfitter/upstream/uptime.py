"""How long could a server be used, and how long could it not, since we know it? Seconds, and how often it went out.

Counted by its connections as their states change (``connection``); nothing is probed for it. Time in which nobody
wanted the server counts for nothing: a server that rests because it is idle is neither up nor out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from outfitter.upstream.lifecycle import Health, State

_OUT = frozenset({State.DEGRADED, State.DOWN, State.NEEDS_AUTH})


@dataclass(slots=True, eq=False)
class Uptime:
    """What all connections to one server have seen so far."""

    ready: float = 0.0
    out: float = 0.0
    failures: int = 0
    """How often a connection went out of use, or could not be opened at first."""

    def move(self, before: Health, after: Health) -> None:
        """Count the time in one state when it becomes another."""
        if after.since != before.since:
            self._add(before, after.since)
        if is_out(after) and not is_out(before):
            self.failures += 1

    def _add(self, health: Health, until: float) -> None:
        if health.state is State.READY:
            self.ready += until - health.since
        elif is_out(health):
            self.out += until - health.since

    def standing(self, healths: Iterable[Health], now: float) -> Standing:
        """The sums up to now, with what its connections are like at this moment."""
        total = Uptime(self.ready, self.out, self.failures)
        known = tuple(healths)
        for health in known:
            total._add(health, now)
        out = [health for health in known if is_out(health)]
        rests = [health.rest_left(now) for health in out]
        return Standing(
            total.ready,
            total.out,
            total.failures,
            max((now - health.since for health in out), default=None),
            min((rest for rest in rests if rest > 0), default=None),
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """How a server has done up to a moment; all times are seconds."""

    ready: float = 0.0
    out: float = 0.0
    failures: int = 0
    out_for: float | None = None
    """How long it has been out; None when it is not."""
    next_try: float | None = None
    """When it is tried again; None when it does not rest."""

    @property
    def share(self) -> float | None:
        """The share of the time in which it was wanted that it could be used; None before anybody wanted it."""
        watched = self.ready + self.out
        return self.ready / watched if watched > 0 else None


def is_out(health: Health) -> bool:
    """Whether somebody who wants the server now does not get it because it failed."""
    return health.state in _OUT or (health.state is State.STARTING and health.last_error is not None)
