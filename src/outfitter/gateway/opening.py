"""A desk put together: pool, lines, pipeline and parking lot, opened and closed by one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from outfitter.gateway.desk import Desk
from outfitter.gateway.governing import UNGOVERNED, Governing
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
from outfitter.upstream import Pool, Standing

_STANDINGS: dict[str, tuple[str, Callable[[Standing], float | None]]] = {
    "outfitter_upstream_ready_seconds": ("Time that connections to a server could be used.", lambda one: one.ready),
    "outfitter_upstream_out_seconds": ("Time that they were wanted and could not be used.", lambda one: one.out),
    "outfitter_upstream_uptime": ("The share of the first in both.", lambda one: one.share),
    "outfitter_upstream_failures": ("How often a server went out of use.", lambda one: float(one.failures)),
    "outfitter_upstream_out_for_seconds": ("How long a server has been out of use.", lambda one: one.out_for),
    "outfitter_upstream_next_try_seconds": ("When a server that rests is tried again.", lambda one: one.next_try),
}
"""What is told of a server's standing; one that does not have the value is left out."""


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
    governing: Governing = UNGOVERNED,
) -> AsyncGenerator[Desk]:
    """A desk that answers as long as the block lasts; without a ``watch`` nothing is kept and nobody is held back."""
    watch = watch or Watch()
    async with make_pool() as pool, anyio.create_task_group() as tasks:
        try:
            seats = SeatBook(make_seat)
            methods = Methods(compose(steps_of(watch.recorder, watch.turnstile, watch.keeping, governing, seats)))
            exchange = Exchange(pool)
            watch.recorder.metrics.gauges.update(_gauges(exchange, watch.turnstile))
            lot = ParkingLot(tasks)
            yield Desk(seats, exchange, methods, lot, tokens, watch.recorder, watch.turnstile, watch.keeping, governing)
        finally:
            tasks.cancel_scope.cancel()


def _gauges(exchange: Exchange, turnstile: Turnstile) -> dict[str, tuple[str, tuple[str, ...], Gauge]]:
    def states() -> dict[tuple[str, ...], float]:
        connections = [line.connection for line in exchange.lines()]
        return dict(Counter((one.server.planned.alias, one.health.state.value) for one in connections))

    def standings(read: Callable[[Standing], float | None]) -> Gauge:
        def values() -> dict[tuple[str, ...], float]:
            found = {server: read(one) for server, one in exchange.pool.standings().items()}
            return {(server,): value for server, value in found.items() if value is not None}

        return values

    def under_way() -> dict[tuple[str, ...], float]:
        return {(): turnstile.under_way}

    return {
        "outfitter_upstreams": ("Connections to servers, by server and state.", ("server", "state"), states),
        **{name: (told, ("server",), standings(read)) for name, (told, read) in _STANDINGS.items()},
        "outfitter_calls_under_way": ("Calls that have begun and not ended.", (), under_way),
    }
