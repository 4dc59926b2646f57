"""An agent's endpoint without a port, for clients that start a command: the catalog, records and spans of ``up``.

Where a squad's folder stands in the place of a catalog, its file counts. Where this machine has a registry, that is
what counts, from its snapshot when the database is away; else the folder.
Whoever can start the command may use it: there are no tokens. Neighbours: ``serving`` does the same on a port.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from outfitter.app.approvals import open_approvals
from outfitter.app.budgets import open_accounts
from outfitter.app.first_start import token_book
from outfitter.app.last_seen import last_seen_of
from outfitter.app.live import make_pool
from outfitter.app.news import News
from outfitter.app.options import GatewayOptions
from outfitter.app.pins import follow_pins, pins_of
from outfitter.app.registry_place import can_have_registry, has_registry
from outfitter.app.results import results_of
from outfitter.app.serving import FolderSource, SeatMaker, Source, nobody
from outfitter.app.settings import Settings
from outfitter.app.squad_files import home_at
from outfitter.basics import the_one_in
from outfitter.catalog import Catalog

if TYPE_CHECKING:
    from outfitter.gateway import Desk


@asynccontextmanager
async def open_endpoint(
    settings: Settings, environment: Mapping[str, str], *, uses_files: bool = False
) -> AsyncGenerator[Desk]:
    """A desk for every agent of this machine's catalog, which is followed as long as the block lasts."""
    import anyio

    from outfitter.app.telemetry import tracing
    from outfitter.gateway import Governing, open_desk, open_recorder

    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    options = GatewayOptions(
        is_open=True, uses_files=uses_files or not (has_registry(settings) and can_have_registry())
    )
    home = home_at(settings.catalog)
    environment = environment if home is None else home.environment(environment)
    source, maker = _source_of(settings, environment, options), SeatMaker(environment, settings)
    catalog, seen = source.first(), pins_of(settings)
    first, pool = nobody if catalog is None else maker.of(catalog), partial(make_pool, settings)
    try:
        async with (
            open_recorder(settings.state, database=settings.database, keep_days=settings.keep_days) as recorder,
            tracing(recorder, environment),
            open_approvals(settings) as approvals,
            open_accounts(settings) as accounts,
            open_desk(
                first,
                None,
                pool,
                watch=options.watch(recorder),
                governing=Governing(
                    seen, approvals, accounts, shelf=results_of(settings), last_seen=last_seen_of(settings)
                ),
            ) as desk,
            anyio.create_task_group() as group,
        ):

            def swap(changed: Catalog) -> None:
                desk.seats.swap(maker.of(changed))

            group.start_soon(source.run, desk, swap)
            group.start_soon(follow_pins, seen, desk)
            try:
                await source.wait()
                yield desk
            finally:
                desk.closing.set()
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None


def _source_of(settings: Settings, environment: Mapping[str, str], options: GatewayOptions) -> Source:
    news = News(settings.state / "endpoint.json")  # it listens nowhere, so nothing is ever told there
    home = home_at(settings.catalog)
    if home is not None:
        from outfitter.app.squad_up import SquadSource

        return SquadSource(settings, news, token_book(settings), home, environment)
    if options.uses_files:
        return FolderSource(settings, news, token_book(settings))
    from outfitter.app.service import Service

    return Service(settings, environment, options, news, is_first=False)
