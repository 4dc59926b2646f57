"""The registry's API without a service: the same application, asked inside this process, over the same database.

So a command does the same with and without a service. Whoever asks without a token is ``LOCAL``. What is held in memory
only (a run's credentials) ends with the command. Neighbours: ``serving`` runs the service, ``cli`` asks.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from outfitter.app.approvals import open_approvals
from outfitter.app.budgets import budgets_here
from outfitter.app.pins import pin_desk
from outfitter.app.probing import lone_probe
from outfitter.app.registry_place import KEYS, registry_url
from outfitter.app.settings import Settings

Message: TypeAlias = MutableMapping[str, Any]
App: TypeAlias = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
"""An ASGI application."""


@asynccontextmanager
async def open_local_api(settings: Settings) -> AsyncGenerator[App]:
    """The API of this machine's registry, as an ASGI application; a first use makes the database."""
    from outfitter.coordinator import Office, make_api, open_access, open_coordinator
    from outfitter.storage import KeyRing, open_audit, open_database

    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    audit = open_audit(settings.state, settings.database)
    try:
        async with (
            open_database(registry_url(settings), KeyRing(settings.state / KEYS)) as database,
            open_coordinator(database, audit=audit) as coordinator,
            open_access(database.tokens, is_open=True) as access,
            open_approvals(settings) as approvals,
        ):
            probe = lone_probe(settings, os.environ, lambda: coordinator.live.catalog)
            budgets = budgets_here(settings)
            office = Office(
                coordinator, access, probe=probe, pins=pin_desk(settings), approvals=approvals, budgets=budgets
            )
            try:
                yield make_api(office)
            finally:
                office.closing.set()
                budgets.close()
    finally:
        audit.close()
