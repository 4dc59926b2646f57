"""The thread that carries ended calls to where their spans go. It fails open: spans are lost and counted, calls never.

One thread, started with the courier, owns the carrier and is the only one to use it: it sleeps until enough calls wait
or the delay is over, and bundles what is there. ``close`` gives it a bounded time for the rest. It knows nothing of
OpenTelemetry; that is ``otlp``.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from outfitter.telemetry.destination import Destination
from outfitter.telemetry.ended import EndedCall

_log = logging.getLogger(__name__)
_CLOSE_SECONDS = 2.0


class Carrier(Protocol):
    """Whatever takes a bundle of calls and brings it away; both may block."""

    def carry(self, calls: Sequence[EndedCall]) -> str:
        """Deliver the calls; says why not, or nothing."""
        ...

    def close(self) -> None:
        """Give up what is under way; called from another thread."""
        ...


@dataclass(slots=True, eq=False)
class Courier:
    """Takes calls at no cost, and delivers them when there is time."""

    carrier: Carrier
    to: Destination
    _waiting: deque[EndedCall] = field(default_factory=deque[EndedCall])
    _wake: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)
    _is_closing: bool = False
    _is_failing: bool = False
    _crowded_out: int = 0
    """Counted by whoever puts calls in."""
    _undelivered: int = 0
    """Counted by the thread."""

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="outfitter-spans", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many calls found no room, or could not be delivered."""
        return self._crowded_out + self._undelivered

    def put(self, calls: Iterable[EndedCall]) -> None:
        """Let these calls wait for delivery; what finds no room is dropped."""
        for call in calls:
            if len(self._waiting) < self.to.most_waiting:
                self._waiting.append(call)
            else:
                self._crowded_out += 1
        if len(self._waiting) >= self.to.most_at_once:
            self._wake.set()

    def close(self, seconds: float = _CLOSE_SECONDS) -> None:
        """Deliver what waits, for so long at most, and end."""
        self._is_closing = True
        self._wake.set()
        self._thread.join(seconds)
        self.carrier.close()
        if self._thread.is_alive():
            _log.warning("%s did not take the last spans in time", self.to.place)

    def _run(self) -> None:
        while not self._is_closing:
            self._wake.wait(self.to.delay)
            self._wake.clear()
            self._deliver()
        self._deliver()

    def _deliver(self) -> None:
        """Bring away what waits. At the end a failure is the last attempt."""
        while self._waiting:
            bundle = [self._waiting.popleft() for _ in range(min(len(self._waiting), self.to.most_at_once))]
            trouble = self._carry(bundle)
            if trouble:
                self._undelivered += len(bundle)
            self._tell(trouble)
            if trouble and self._is_closing:
                self._undelivered += len(self._waiting)
                self._waiting.clear()

    def _carry(self, bundle: Sequence[EndedCall]) -> str:
        try:
            return self.carrier.carry(bundle)
        except Exception:  # noqa: BLE001 - the thread's edge: a bundle that cannot be made costs no other
            _log.exception("spans could not be made")
            return "they could not be made"

    def _tell(self, trouble: str) -> None:
        """Say once that it fails, and once that it works again."""
        if trouble and not self._is_failing:
            _log.warning("spans do not reach %s: %s; calls go on without them", self.to.place, trouble)
        elif self._is_failing and not trouble:
            _log.warning("spans reach %s again", self.to.place)
        self._is_failing = bool(trouble)
