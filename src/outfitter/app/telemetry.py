"""The gateway's records as spans: what the recorder hears goes to the courier, if the environment wants spans.

Telemetry fails open. What is wrong with its setting is told once, and the gateway runs without spans.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outfitter.errors import OutfitterError
from outfitter.telemetry import Courier, open_courier, read_destination

if TYPE_CHECKING:
    from outfitter.gateway import CallRecord, Recorder

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.05


@asynccontextmanager
async def tracing(recorder: Recorder, environment: Mapping[str, str]) -> AsyncGenerator[None]:
    """Calls become spans as long as the block lasts; at its end the last ones have two seconds to go out."""
    import anyio
    import anyio.to_thread

    courier = _open(environment)
    if courier is None:
        yield
        return
    with recorder.listening() as heard:
        hearing = _Hearing(recorder, heard, courier, _count(recorder))
        recorder.metrics.gauges["outfitter_spans_dropped_total"] = (
            "Calls whose span found no room, or did not reach the receiver.", (), lambda: {(): hearing.dropped}
        )  # fmt: skip
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(hearing.run)
                try:
                    yield
                finally:
                    group.cancel_scope.cancel()
        finally:
            hearing.once()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(courier.close)


def _open(environment: Mapping[str, str]) -> Courier | None:
    try:
        to = read_destination(environment)
        return None if to is None else open_courier(to)
    except OutfitterError as error:
        _log.warning("calls leave no spans: %s", error)
        return None


def _count(recorder: Recorder) -> int:
    return sum(recorder.metrics.calls.values())


@dataclass(slots=True)
class _Hearing:
    """Hands on what the recorder tells, and knows how much it missed."""

    recorder: Recorder
    heard: deque[CallRecord]
    courier: Courier
    handed: int
    """How many calls were handed on, and how many there had been before."""

    @property
    def dropped(self) -> int:
        """Calls without a span that should have one: unheard, without room, or undelivered."""
        unheard = _count(self.recorder) - self.handed - len(self.heard)
        return max(unheard, 0) + self.courier.dropped

    async def run(self) -> None:
        """Hand on what was heard, many times a second."""
        import anyio

        while True:
            await anyio.sleep(_LOOK_SECONDS)
            self.once()

    def once(self) -> None:
        """Hand on what was heard."""
        calls = [self.heard.popleft() for _ in range(len(self.heard))]
        self.handed += len(calls)
        self.courier.put(calls)
