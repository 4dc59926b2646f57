"""Calls that came in one turn of the loop: each is looked at as it comes, then all are counted and sent together.

What is done for many calls in a row costs less than the same with something else between them: sending together saves
about a tenth of a call's CPU, counting together most of what counting costs. A call that is alone is sent at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol

from outfitter.errors import StorageUnavailable
from outfitter.policy import Meter


class Departing(Protocol):
    """A call that is ready to be sent."""

    is_over: bool
    meter: Meter | None
    """Where it is counted."""

    def canonical(self) -> bytes:
        """Its arguments as JSON with sorted keys."""
        ...

    def depart(self, now: float) -> None:
        """Be sent; it has been counted. ``now`` is monotonic."""
        ...

    def hand_over(self) -> None:
        """Let the full lane go on, which says what is wrong."""
        ...


class Departures:
    """The calls that are ready and not sent yet."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        """None yet."""
        self._waiting: list[Departing] = []

    def add(self, call: Departing, *, is_alone: bool) -> None:
        """Send a call: now when no other is under way, else with its fellows."""
        self._waiting.append(call)
        if is_alone:
            self._flush()
        elif len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        now = time.monotonic()
        counted: dict[Meter, list[Departing]] = {}
        for call in waiting:
            meter = call.meter
            if call.is_over:
                continue
            if meter is None:
                call.depart(now)
            elif meter in counted:
                counted[meter].append(call)
            else:
                counted[meter] = [call]
        for meter, calls in counted.items():
            allowed = _spend(meter, calls)
            for call in calls[:allowed]:
                call.depart(now)
            for call in calls[allowed:]:
                call.hand_over()


def _spend(meter: Meter, calls: Sequence[Departing]) -> int:
    """Count calls; how many of them may be made."""
    try:
        return meter.spend_some([call.canonical() if meter.reads else b"" for call in calls])
    except StorageUnavailable:
        return 0  # the full lane says so
