"""A desk put together: pool, lines, pipeline and parking lot, opened and closed by one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from outfitter.gateway.desk import Desk
from outfitter.gateway.limits import Turnstile
from outfitter.gateway.lines import Exchange
from outfitter.gateway.methods import Methods
from outfitter.gateway.metrics import Gauge
from outfitter.gateway.parking import ParkingLot
from outfitter.gateway.pipeline import compose, steps_of
from outfitter.gateway.recorder import Recorder
from outfitter.gateway.seats import MakeSeat, SeatBook
from outfitter.gateway.steps.recording import Keeping
from outfitter.gateway.tokens import TokenSource
from outfitter.upstream import Pool


@dataclass(frozen=True, slots=True)
class Watch:
    """Who writes calls down, who counts them in, and whose arguments are kept."""

    recorder: Recorder = field(default_factory=Recorder)
    turnstile: Turnstile = field(default_factory=Turnstile)
    keeping: Keeping = field(default_factory=Keeping)


@asynccontextmanager
async def open_desk(
    make_seat: MakeSeat,
    tokens: TokenSource | None,
    make_pool: Callable[[], Pool] = Pool,
    *,
    watch: Watch | None = None,
) -> AsyncGenerator[Desk]:
    """A desk that answers as long as the block lasts; without a ``watch`` nothing is kept and nobody is held back."""
    watch = watch or Watch()
    async with make_pool() as pool, anyio.create_task_group() as tasks:
        try:
            seats = SeatBook(make_seat)
            methods = Methods(compose(steps_of(watch.recorder, watch.turnstile, watch.keeping)))
            exchange = Exchange(pool)
            watch.recorder.metrics.gauges.update(_gauges(exchange, watch.turnstile))
            lot = ParkingLot(tasks)
            yield Desk(seats, exchange, methods, lot, tokens, watch.recorder, watch.turnstile, watch.keeping)
        finally:
            tasks.cancel_scope.cancel()


def _gauges(exchange: Exchange, turnstile: Turnstile) -> dict[str, tuple[str, tuple[str, ...], Gauge]]:
    def states() -> dict[tuple[str, ...], float]:
        connections = [line.connection for line in exchange.lines()]
        return dict(Counter((one.server.planned.alias, one.health.state.value) for one in connections))

    def under_way() -> dict[tuple[str, ...], float]:
        return {(): turnstile.under_way}

    return {
        "outfitter_upstreams": ("Connections to servers, by server and state.", ("server", "state"), states),
        "outfitter_calls_under_way": ("Calls that have begun and not ended.", (), under_way),
    }
