"""Runs that the coordinator does not let this runner begin: asked for again later and later, and told at the end.

Nothing is given up: such a run stays pending, and another runner, or this one with another token, may begin it. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import anyio

_FIRST_WAIT, _MOST_WAIT = 1.0, 300.0
_ENOUGH = 3
"""How many refusals of a run are enough for a runner that is to end when nothing is left to do."""


@dataclass(slots=True)
class Refusals:
    """How often each run was refused, and until when it is left alone."""

    clock: Callable[[], float] = anyio.current_time
    _known: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])

    def note(self, run_id: str) -> tuple[int, float]:
        """A run was refused once more: how often it was, and for how many seconds it is left alone."""
        count = self._known.get(run_id, (0, 0.0))[0] + 1
        wait = min(_FIRST_WAIT * 2 ** (count - 1), _MOST_WAIT)
        self._known[run_id] = (count, self.clock() + wait)
        return count, wait

    def rests(self, run_id: str) -> bool:
        """Whether a run is left alone now."""
        return run_id in self._known and self.clock() < self._known[run_id][1]

    def keep(self, pending: Collection[str]) -> None:
        """Forget all but these runs: the others are no longer pending."""
        self._known = {run_id: known for run_id, known in self._known.items() if run_id in pending}

    def stubborn(self, pending: Collection[str]) -> tuple[str, ...]:
        """Those of these runs that were refused often enough."""
        return tuple(run_id for run_id in pending if self._known.get(run_id, (0, 0.0))[0] >= _ENOUGH)
