"""The courier keeps nobody waiting: what finds no room is dropped and counted, and its end has a bound."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from outfitter.gateway import CallRecord
from outfitter.telemetry import Courier, Destination, EndedCall

SMALL = Destination("http://nowhere:1", most_waiting=4, most_at_once=2, delay=60)


def calls(count: int) -> list[CallRecord]:
    return [
        CallRecord(call_id=str(n), agent="a", token_id="t", started_at=1.0, duration=0.1, outcome="done")
        for n in range(count)
    ]


@dataclass(slots=True)
class Held:
    """Takes bundles when it is let to."""

    trouble: str = ""
    taken: list[str] = field(default_factory=list[str])
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    may_go: threading.Event = field(default_factory=threading.Event)
    is_closed: bool = False

    def carry(self, calls: Sequence[EndedCall]) -> str:
        self.came.release()
        self.may_go.wait(30)
        self.taken += (call.call_id for call in calls)
        return self.trouble

    def close(self) -> None:
        self.is_closed = True
        self.may_go.set()


def test_what_finds_no_room_is_dropped_and_counted() -> None:
    carrier = Held()
    courier = Courier(carrier, SMALL)
    courier.put(calls(2))
    assert carrier.came.acquire(timeout=10), "a full bundle goes out before the delay is over"
    courier.put(calls(7))
    assert courier.dropped == 3
    carrier.may_go.set()
    courier.close()
    assert carrier.taken == ["0", "1", "0", "1", "2", "3"]
    assert (courier.dropped, carrier.is_closed) == (3, True)


def test_a_carrier_that_hangs_does_not_hold_up_the_end() -> None:
    carrier = Held()
    courier = Courier(carrier, SMALL)
    courier.put(calls(2))
    assert carrier.came.acquire(timeout=10)
    began = time.monotonic()
    courier.close(0.1)
    assert time.monotonic() - began < 5
    assert carrier.is_closed


def test_at_the_end_a_failure_is_the_last_attempt_and_the_rest_is_counted() -> None:
    carrier = Held("no answer")
    courier = Courier(carrier, SMALL)
    courier.put(calls(2))
    assert carrier.came.acquire(timeout=10)
    courier.put(calls(4))
    courier.close(0.01)
    ends = time.monotonic() + 10
    while courier.dropped < 6:
        assert time.monotonic() < ends
    assert carrier.taken == ["0", "1"]


@dataclass(slots=True)
class Broken:
    """Cannot carry anything."""

    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def carry(self, calls: Sequence[EndedCall]) -> str:
        del calls
        self.came.release()
        raise RuntimeError("a defect")

    def close(self) -> None:
        """Nothing to end."""


def test_a_defect_costs_its_bundle_and_not_the_courier(caplog: pytest.LogCaptureFixture) -> None:
    carrier = Broken()
    courier = Courier(carrier, SMALL)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            courier.put(calls(2))
            assert carrier.came.acquire(timeout=10)
        courier.close()
    assert courier.dropped == 4
    assert sum("do not reach" in one.getMessage() for one in caplog.records) == 1
