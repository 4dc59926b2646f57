"""Calls that came in one turn of the loop: each is looked at as it comes, then all are sent together.

What is done for many calls in a row costs less than the same with a write after each: a tenth of a call's CPU.
A call that is alone is sent at once.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Departing(Protocol):
    """A call that is ready to be sent."""

    def depart(self, now: float) -> None:
        """Be sent, unless it has ended meanwhile; ``now`` is monotonic."""
        ...


class Departures:
    """The calls that are ready and not sent yet."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        """None yet."""
        self._waiting: list[Departing] = []

    def add(self, call: Departing, now: float, *, is_alone: bool) -> None:
        """Send a call: now when no other is under way, else with its fellows."""
        if is_alone:
            call.depart(now)
            return
        self._waiting.append(call)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        now = time.monotonic()
        for call in waiting:
            call.depart(now)
