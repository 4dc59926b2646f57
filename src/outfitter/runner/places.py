"""The places of a runner: which runs have one, which give theirs up while they wait, and who may come next. No I/O.

A run that waits for another one does nothing, so it takes no place meanwhile, neither of the runner nor of its agent:
a parent, its child and a grandchild come to their ends on one place. Those that are waited for come before all others,
so that the places of those that wait are not filled with more that will wait. One whose waiting is over goes on at
once: for a moment there may be more at work than there are places, because a run that has to wait for a place in the
middle of its work could wait for one that waits for it. Neighbours: ``runner`` fills places, the orchestrator waits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import anyio

from outfitter.runner.orders import Offer

Why: TypeAlias = Literal["stopped", "superseded", "closing"]
_UNKNOWN_AGENT = 1
"""How many runs of an agent are executed at a time until its first order has said how many may be."""


@dataclass(slots=True)
class Active:
    """A run that is executed here, or is about to be."""

    agent: str = ""
    is_begun: bool = False
    """Whether it is being executed; until then the place is only kept for it."""
    is_left: bool = False
    """Whether it waits for the end of this process, so that it is executed again later."""
    awaited: list[str] = field(default_factory=list[str])
    """The runs that calls of it wait for; with any, it has given up its place."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    attempt: int = 0
    """The number of the attempt, once it is known."""
    why: Why | None = None
    """Why it was ended from here."""

    def end(self, why: Why) -> None:
        """Cancel it; the first reason counts."""
        self.why = self.why or why
        self.scope.cancel()


@dataclass(slots=True)
class Places:
    """The places of one runner, and who is at work on them."""

    most: int = 4
    """How many runs are at work at a time."""
    changed: Callable[[], None] = lambda: None
    """Told whenever a place was taken or has become free, and when somebody begins to wait."""
    active: dict[str, Active] = field(default_factory=dict[str, Active])
    """Every run that is executed here, by its id: those at work and those that wait for another."""
    limits: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    """How many runs of an agent may be at work at a time, as the last order for it said; None: as many as there are
    places. An agent without an entry is not known yet."""
    _heard: list[Offer] = field(default_factory=list[Offer])

    def is_active(self, run_id: str) -> bool:
        """Whether a run is executed here now."""
        return run_id in self.active

    @property
    def resting(self) -> int:
        """How many of the runs that are executed here wait for another one."""
        return sum(bool(one.awaited) for one in self.active.values())

    @property
    def is_full(self) -> bool:
        """Whether as many are at work as there are places."""
        return len(self.active) - self.resting >= self.most

    def has_room_for(self, agent: str) -> bool:
        """Whether another run of this agent may be at work, as far as the agent's own limit goes."""
        most = self.limits.get(agent, _UNKNOWN_AGENT)
        return most is None or sum(one.agent == agent and not one.awaited for one in self.active.values()) < most

    @contextmanager
    def waiting(self, run_id: str, other: Offer, *, is_pending: bool) -> Generator[None]:
        """A run waits for another one as long as the block lasts, and has no place meanwhile.

        The other is heard of by this too, when it is pending: its place must not go to a third before it is known.
        """
        active = self.active.get(run_id)
        if active is None:  # it has ended, and nobody waits any more
            yield
            return
        active.awaited.append(other.run_id)
        if is_pending:
            self._heard.append(other)
        self.changed()
        try:
            yield
        finally:
            if other.run_id in active.awaited:
                active.awaited.remove(other.run_id)
            self.changed()

    def end_waiting_for(self, run_id: str) -> None:
        """A run has ended here: those that wait for it have their places again, before anybody else gets one."""
        for one in self.active.values():
            one.awaited = [awaited for awaited in one.awaited if awaited != run_id]

    def take_heard(self) -> list[Offer]:
        """The pending runs that somebody has begun to wait for since this was asked last."""
        heard, self._heard = self._heard, []
        return heard

    def in_order(self, offers: Iterable[Offer]) -> list[Offer]:
        """Runs in the order in which they get places: those that are waited for first."""
        awaited = {run_id for one in self.active.values() for run_id in one.awaited}
        return sorted(offers, key=lambda offer: offer.run_id not in awaited)
