"""The gateway of a catalog: seats from the resolver, a new catalog taken over while it runs.

Where the catalog comes from is one of three: the folder itself (``following``), the registry beside it (``service``),
or a repository's squad file (``squad_up``).
A changed catalog is loaded and checked beside the one in use. A bad one changes nothing and is told once.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from outfitter.app.approvals import open_approvals
from outfitter.app.budgets import open_accounts
from outfitter.app.first_start import load_http, token_book
from outfitter.app.last_seen import last_seen_of
from outfitter.app.live import arm_plan, make_pool
from outfitter.app.news import NEWS, News
from outfitter.app.options import BeforeEnd, GatewayOptions, Started, at_once
from outfitter.app.pins import follow_pins, pins_of
from outfitter.app.results import results_of
from outfitter.app.settings import Settings
from outfitter.app.sharing import ALONE, Share
from outfitter.app.squad_files import find_home
from outfitter.basics import the_one_in
from outfitter.catalog import Catalog
from outfitter.errors import OutfitterError, UnknownAgent
from outfitter.resolution import RunPlan, resolve
from outfitter.storage import CatalogFolder

if TYPE_CHECKING:
    from outfitter.gateway import Address, Desk, Gate, Relay, RunSeats, Seat, TokenSource

_log = logging.getLogger(__name__)
MakeSeat = Callable[[str], "Seat"]


@dataclass(frozen=True, slots=True)
class SeatMaker:
    """Makes the seats of every catalog that is served, each armed with this machine's secrets."""

    environment: Mapping[str, str]
    settings: Settings
    share: Share = ALONE
    keep_seconds: float = 60.0
    """How long a seat is good for other catalogs too, if they have the same plan. Later a changed secret counts."""
    retry_seconds: float = 5.0
    """The same for a seat that lacks something: a provider that does not answer is not asked at every change."""
    _kept: dict[str, tuple[float, Seat]] = field(default_factory=dict[str, tuple[float, "Seat"]])
    """When the newest seat of an agent was made, and the seat."""

    def of(self, catalog: Catalog) -> MakeSeat:
        """What makes each agent's seat from this catalog."""
        return partial(self._make, catalog)

    def _make(self, catalog: Catalog, agent: str) -> Seat:
        # A seat must not keep a whole catalog that is no longer in use.
        plan = replace(self.share.of_plan(resolve(agent, catalog)), catalog=Catalog())
        made, seat = self._kept.get(agent, (0.0, None))
        if seat is None or seat.plan != plan or time.monotonic() - made >= self._good_for(seat):
            seat = self._arm(plan)
            self._kept[agent] = time.monotonic(), seat
        return seat

    def _good_for(self, seat: Seat) -> float:
        return self.keep_seconds if seat.is_whole else self.retry_seconds

    def _arm(self, plan: RunPlan) -> Seat:
        from outfitter.gateway import Seat

        outfit = arm_plan(plan, self.environment, self.settings)
        for alias, error in outfit.servers.items():
            if isinstance(error, OutfitterError):
                _log.warning("agent '%s' goes without server '%s': %s", plan.agent.name, alias, error)
        return Seat(outfit.plan, outfit.servers)


def nobody(agent: str) -> Seat:
    """The seats before there is a catalog."""
    raise UnknownAgent(f"no agent '{agent}' yet")


class Source(Protocol):
    """Where the catalog and the tokens come from, and what else is served beside the gateway."""

    @property
    def tokens(self) -> TokenSource:
        """Who may come in."""
        ...

    def first(self) -> Catalog | None:
        """The catalog to begin with; None when it comes later."""
        ...

    async def run(self, desk: Desk, swap: Callable[[Catalog], None]) -> None:
        """Follow the catalog until the desk closes; a changed one is given to ``swap``."""
        ...

    async def wait(self) -> None:
        """Return when there is a catalog to serve."""
        ...

    def told(self, address: Address) -> Started:
        """What whoever started it is told."""
        ...

    @property
    def runs(self) -> RunSeats | None:
        """Who knows what runs were given; None when there are no runs."""
        ...

    def ready(self) -> tuple[int, str]:
        """Status and text of ``/ready``, as far as the source knows."""
        ...

    def aside(self, scope: Mapping[str, Any], pages: frozenset[str]) -> Any:  # noqa: ANN401 - an ASGI application
        """Who answers a request in the place of the gateway; None when nobody does."""
        ...


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The catalog folder itself, and the tokens of a file: no registry, no API."""

    settings: Settings
    news: News
    tokens: TokenSource
    runs: None = None

    def first(self) -> Catalog:
        """The folder's catalog; the errors of bad files."""
        return CatalogFolder(self.settings.catalog).load()

    async def run(self, desk: Desk, swap: Callable[[Catalog], None]) -> None:
        """Follow the folder."""
        import anyio
        import anyio.to_thread

        from outfitter.app.following import follow_folder, state_of

        async def take(catalog: Catalog, _seen: str) -> None:
            swap(catalog)

        seen = await anyio.to_thread.run_sync(state_of, self.settings.catalog)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, load_http)
            tasks.start_soon(follow_folder, CatalogFolder(self.settings.catalog), take, self.news, seen)
            await desk.closing.wait()
            tasks.cancel_scope.cancel()

    async def wait(self) -> None:
        """Nothing is waited for."""

    def told(self, address: Address) -> Started:
        """The agents of the folder."""
        return folder_told(self.settings, address)

    def ready(self) -> tuple[int, str]:
        """Nothing can be missing."""
        return 200, "ready"

    def aside(self, scope: Mapping[str, Any], pages: frozenset[str]) -> None:
        """Nobody else is served."""


def folder_told(settings: Settings, address: Address) -> Started:
    """What is told of a gateway that serves the folder itself."""
    agents = tuple(sorted(CatalogFolder(settings.catalog).load().agents))
    return Started(address, agents, has_tokens=bool(token_book(settings).records()))


async def run_gateway(
    settings: Settings,
    environment: Mapping[str, str],
    options: GatewayOptions,
    on_ready: Callable[[Started], None] | None = None,
    relay: Relay | None = None,
    before_end: BeforeEnd = at_once,
) -> None:
    """Serve every agent of the catalog until told to stop; ``on_ready`` hears where it listens.

    With a ``relay`` it is one worker of several, and ends when its standard input does. ``before_end`` is waited for
    when it is told to stop, while everything is still answered.
    """
    home = None if options.squad is None else find_home(options.squad)
    if home is not None:
        settings, environment = home.settings(settings), home.environment(environment)
    pid = os.getpid() if relay is None else os.getppid()
    news = News(settings.state / NEWS, pid, str(settings.catalog.resolve()))
    source: Source
    if home is not None:
        from outfitter.app.squad_up import SquadSource

        source = SquadSource(settings, news, token_book(settings), home, environment)
    elif options.uses_files:
        source = FolderSource(settings, news, token_book(settings))
    else:
        from outfitter.app.service import Service

        is_first = relay is None or relay.number == 0
        source = Service(settings, environment, options, news, is_first=is_first, relay=relay)
    run = _Run(settings, environment, options, source, news, relay, before_end)
    try:
        await run.serve(on_ready or (lambda _started: None))
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the gateway."""

    settings: Settings
    environment: Mapping[str, str]
    options: GatewayOptions
    source: Source
    news: News
    relay: Relay | None
    before_end: BeforeEnd

    async def serve(self, on_ready: Callable[[Started], None]) -> None:
        """From the first file to the last call."""
        import anyio

        from outfitter.app.telemetry import tracing
        from outfitter.gateway import Governing, open_desk, open_recorder

        settings, options, catalog = self.settings, self.options, self.source.first()
        share = ALONE if self.relay is None else Share(self.relay.number, self.relay.count)
        maker = SeatMaker(self.environment, settings, share)
        tokens = None if options.is_open else self.source.tokens
        first, pool = nobody if catalog is None else maker.of(catalog), partial(make_pool, settings)
        watch, seen = partial(options.watch, share=share), pins_of(settings)
        async with (
            open_recorder(settings.state, database=settings.database, keep_days=settings.keep_days) as recorder,
            tracing(recorder, self.environment),
            open_approvals(settings) as approvals,
            open_accounts(settings, is_alone=self.relay is None) as accounts,
            open_desk(
                first,
                tokens,
                pool,
                watch=watch(recorder),
                governing=Governing(
                    seen, approvals, accounts, shelf=results_of(settings), last_seen=last_seen_of(settings)
                ),
            ) as desk,
            anyio.create_task_group() as group,
        ):
            accounts.show_in(recorder.metrics)
            desk.seats.runs = self.source.runs
            group.start_soon(follow_pins, seen, desk)
            run = partial(self.source.run, desk, lambda catalog: desk.seats.swap(maker.of(catalog)))
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                await self._listen(desk, signals, lambda: group.start_soon(run), on_ready)
            if self.relay is None:
                self.news.end()

    async def _listen(
        self,
        desk: Desk,
        signals: AsyncIterator[signal.Signals],
        start: Callable[[], object],
        on_ready: Callable[[Started], None],
    ) -> None:
        """Answer on the port until told to stop. The port comes first: when it is in use, nothing is begun."""
        from outfitter.gateway import HttpFront, serving

        gate = _gate(desk, self.options, self.news, self.source)
        aside = partial(self.source.aside, pages=frozenset(gate.pages))
        front = HttpFront(desk, gate, self.relay, aside)
        async with serving(front, self.options.address) as address:
            start()
            await self.source.wait()
            self.news.begin(address)
            on_ready(self.source.told(address))
            await _hear_the_end(signals, is_worker=self.relay is not None)
            await self.before_end()
            desk.turnstile.is_closing = True
            desk.closing.set()


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


def _gate(desk: Desk, options: GatewayOptions, news: News, source: Source) -> Gate:
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
        status, text = source.ready()
        return status, f"{text}; a changed catalog is not used" if news.problem else text

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
