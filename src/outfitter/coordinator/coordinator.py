"""The coordinator as one value: what the API, the gateway and the CLI are given."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from outfitter.basics import the_one_in
from outfitter.coordinator.blueprints import Blueprints
from outfitter.coordinator.credentials import CredentialBook
from outfitter.coordinator.entries import Entries
from outfitter.coordinator.events import EventLog
from outfitter.coordinator.executing import Executions, LeaseTimes
from outfitter.coordinator.live import LiveCatalog
from outfitter.coordinator.overview import Overviews
from outfitter.coordinator.pruning import Pruner
from outfitter.coordinator.runs import Runs
from outfitter.coordinator.starting import Fetch
from outfitter.storage import AuditStore, Database
from outfitter.upstream import Guard


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The use cases over one database. ``audit`` has the calls, when they are kept."""

    database: Database
    live: LiveCatalog
    entries: Entries
    blueprints: Blueprints
    runs: Runs
    executions: Executions
    pruner: Pruner
    events: EventLog
    overviews: Overviews
    audit: AuditStore | None = None


@asynccontextmanager
async def open_coordinator(
    database: Database,
    *,
    guard: Guard | None = None,
    fetch: Fetch | None = None,
    audit: AuditStore | None = None,
    times: LeaseTimes | None = None,
    holder: str | None = None,
) -> AsyncGenerator[Coordinator]:
    """The coordinator of an open database; it follows changes until the block ends.

    ``guard`` says where servers may be, as for those who connect. ``fetch`` looks up variables and secrets, so that a
    run which lacks one is refused; without it that is found by whoever connects. ``times`` says how long runners may
    be silent and what runs told is kept, ``holder`` where the credentials of runs are held that are started here.
    """
    rules = guard or Guard()
    live, events = LiveCatalog(database.registry), EventLog(database.events)
    await live.load()
    entries, book = Entries(database.registry, live, events, rules), CredentialBook()
    runs = Runs(database.runs, live, fetch, book, holder)
    times = times or LeaseTimes()
    executions = Executions(database.executing, database.runs, database.runners, live, book, times)
    pruner = Pruner(database.pruning, times.keep_days)
    blueprints, overviews = Blueprints(live, rules), Overviews(live, fetch)
    coordinator = Coordinator(
        database, live, entries, blueprints, runs, executions, pruner, events, overviews, audit
    )  # fmt: skip
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(live.run)
            tasks.start_soon(runs.run)
            tasks.start_soon(executions.run)
            tasks.start_soon(pruner.run)
            yield coordinator
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None
