"""The gateway of a catalog: seats from the resolver, tokens from a file, a new catalog taken over while it runs.

A changed catalog is loaded and checked beside the one in use. A bad one changes nothing and is told once.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from outfitter.app.live import arm_plan, make_pool
from outfitter.app.news import News
from outfitter.app.settings import Settings
from outfitter.app.sharing import ALONE, Share
from outfitter.catalog import Catalog
from outfitter.errors import OutfitterError
from outfitter.resolution import resolve
from outfitter.storage import CatalogFolder

if TYPE_CHECKING:
    from outfitter.gateway import Address, Desk, Gate, Recorder, Relay, Seat, TokenBook, Watch

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
NEWS = "gateway.json"
MakeSeat = Callable[[str], "Seat"]


def token_book(settings: Settings) -> TokenBook:
    """The tokens of this machine's gateway."""
    from outfitter.gateway import TokenBook

    return TokenBook(settings.state / "tokens.json")


def seat_maker(catalog: Catalog, environment: Mapping[str, str], settings: Settings, share: Share = ALONE) -> MakeSeat:
    """Makes each agent's seat from the catalog, armed with this machine's secrets."""

    def make(agent: str) -> Seat:
        from outfitter.gateway import Seat

        outfit = arm_plan(share.of_plan(resolve(agent, catalog)), environment, settings)
        for error in outfit.servers.values():
            if isinstance(error, OutfitterError):
                _log.warning("agent '%s' goes without a server: %s", agent, error)
        return Seat(outfit.plan, outfit.servers)

    return make


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """How the gateway is to be run."""

    host: str = "127.0.0.1"
    port: int = 8700
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    is_open: bool = False
    """Let everyone on this machine in without a token."""
    keep_arguments: tuple[str, ...] = ()
    """Agents whose arguments are kept in the records, redacted."""
    keep_results: tuple[str, ...] = ()
    """Agents whose results are kept in the records, redacted."""
    concurrent_calls: int = 256
    calls_per_second: float | None = None
    most_memory: int | None = None
    """Bytes above which no new calls are taken."""
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def address(self) -> Address:
        """Where it listens."""
        from outfitter.gateway import Address

        return Address(self.host, self.port, self.tls_cert, self.tls_key)

    def watch(self, recorder: Recorder, share: Share = ALONE) -> Watch:
        """Who records and counts."""
        from outfitter.gateway import Keeping, Limits, Turnstile, Watch

        rate = None if self.calls_per_second is None else share.of_rate(self.calls_per_second)
        limits = Limits(share.of_calls(self.concurrent_calls), rate)
        keeping = Keeping(frozenset(self.keep_arguments), frozenset(self.keep_results))
        return Watch(recorder, Turnstile(limits, self.most_memory), keeping)


async def run_gateway(
    settings: Settings,
    environment: Mapping[str, str],
    options: GatewayOptions,
    on_ready: Callable[[Address], None] | None = None,
    relay: Relay | None = None,
) -> None:
    """Serve every agent of the catalog until told to stop; ``on_ready`` hears where it listens.

    With a ``relay`` it is one worker of several, and ends when its standard input does.
    """
    try:
        await _run(settings, environment, options, on_ready or (lambda _address: None), relay)
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None


def the_one_in(error: BaseExceptionGroup[BaseException]) -> BaseException:
    """What a group of one was about."""
    if len(error.exceptions) != 1:
        return error
    inner = error.exceptions[0]
    return (
        the_one_in(cast("BaseExceptionGroup[BaseException]", inner)) if isinstance(inner, BaseExceptionGroup) else inner
    )


async def _run(
    settings: Settings,
    environment: Mapping[str, str],
    options: GatewayOptions,
    on_ready: Callable[[Address], None],
    relay: Relay | None,
) -> None:
    import anyio

    from outfitter.app.telemetry import tracing
    from outfitter.gateway import HttpFront, open_desk, open_recorder, serving

    tokens = None if options.is_open else token_book(settings)
    folder = CatalogFolder(settings.catalog)
    share = ALONE if relay is None else Share(relay.number, relay.count)
    make = partial(seat_maker, environment=environment, settings=settings, share=share)
    first, pool = make(folder.load()), partial(make_pool, settings)
    async with (
        open_recorder(settings.state, database=settings.database, keep_days=settings.keep_days) as recorder,
        tracing(recorder, environment),
        open_desk(first, tokens, pool, watch=options.watch(recorder, share)) as desk,
        anyio.create_task_group() as group,
    ):
        news = News(settings.state / NEWS, os.getpid() if relay is None else os.getppid())
        front = HttpFront(desk, _gate(desk, options, news), relay)
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with serving(front, options.address, record=recorder.record) as address:
                group.start_soon(_follow, folder, desk, make, news)
                news.begin(address)
                on_ready(address)
                await _hear_the_end(signals, is_worker=relay is not None)
                desk.turnstile.is_closing = True
                desk.closing.set()
        if relay is None:
            news.end()
        group.cancel_scope.cancel()


async def _hear_the_end(signals: AsyncIterator[signal.Signals], *, is_worker: bool) -> None:
    """Wait until told to stop; a worker hears it on its standard input too, which ends with whoever started it."""
    import anyio

    async with anyio.create_task_group() as group:

        async def hear_input() -> None:
            await anyio.wait_readable(0)
            group.cancel_scope.cancel()

        if is_worker:
            group.start_soon(hear_input)
        async for _ in signals:
            break
        group.cancel_scope.cancel()


def _gate(desk: Desk, options: GatewayOptions, news: News) -> Gate:
    """The door with its pages. Numbers are for this machine, or for those with an admin token."""
    from outfitter.errors import StorageUnavailable
    from outfitter.gateway import Gate, Page

    def is_ready() -> tuple[int, str]:
        if desk.turnstile.is_closing:
            return 503, "closing"
        try:
            desk.recorder.prepare()
        except StorageUnavailable:
            return 503, "calls cannot be recorded"
        return 200, "ready; a changed catalog is not used" if news.problem else "ready"

    metrics = desk.recorder.metrics
    metrics.gauges["outfitter_configuration_good"] = (
        "1 when the newest catalog is in use, 0 when an older one is.", (), lambda: {(): 0 if news.problem else 1}
    )  # fmt: skip
    is_private = not options.address.is_loopback or bool(options.hosts)
    pages = {
        "/health": Page(lambda: (200, "alive")),
        "/ready": Page(is_ready),
        "/metrics": Page(lambda: (200, metrics.text()), is_private),
    }
    return Gate(desk.tokens, options.hosts, options.origins, pages, desk.refuse_call, metrics.count_turned)


async def _follow(folder: CatalogFolder, desk: Desk, make: Callable[[Catalog], MakeSeat], news: News) -> None:
    """Take a changed catalog over when it is whole and right; keep the last good one otherwise."""
    import anyio
    import anyio.to_thread

    seen = await anyio.to_thread.run_sync(_state_of, folder.path)
    while True:
        await anyio.sleep(_LOOK_SECONDS)
        now = await anyio.to_thread.run_sync(_state_of, folder.path)
        if now is None or now == seen:
            continue
        seen = now
        try:
            desk.seats.swap(make(await anyio.to_thread.run_sync(folder.load)))
        except OutfitterError as error:
            _log.warning("the changed catalog is not used: %s", error)
            news.tell(str(error))
        else:
            _log.warning("the changed catalog is in use")
            news.tell("")


def _state_of(path: Path) -> tuple[tuple[str, int, int], ...] | None:
    """Which files there are, and which versions of them; None when it cannot be seen now."""
    found: list[tuple[str, int, int]] = []
    try:
        files = sorted(path.rglob("*"))
    except OSError:  # too many open files, for instance: looked at again in a moment
        return None
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        found.append((str(file), stat.st_mtime_ns, stat.st_size))
    return tuple(found)
