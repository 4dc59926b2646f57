"""The registry's API without a service: the same application, asked inside this process, over the same database.

So a command does the same with and without a service. Whoever asks without a token is ``LOCAL``. What is held in memory
only (a run's credentials) ends with the command. Neighbours: ``serving`` runs the service, ``cli`` asks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from outfitter.app.settings import Settings

if TYPE_CHECKING:
    from outfitter.coordinator import Api

DATABASE, KEYS = "registry.sqlite", "registry.keys"


def has_registry(settings: Settings) -> bool:
    """Whether there is a registry here, without opening it."""
    return (settings.state / DATABASE).exists()


@asynccontextmanager
async def open_local_api(settings: Settings) -> AsyncGenerator[Api]:
    """The API of this machine's registry, as an ASGI application; a first use makes the database."""
    from outfitter.coordinator import Office, make_api, open_access, open_coordinator
    from outfitter.storage import KeyRing, open_audit, open_database

    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    url = f"sqlite:///{settings.state / DATABASE}"
    audit = open_audit(settings.state, settings.database)
    try:
        async with (
            open_database(url, KeyRing(settings.state / KEYS)) as database,
            open_coordinator(database, audit=audit) as coordinator,
            open_access(database.tokens, is_open=True) as access,
        ):
            office = Office(coordinator, access)
            try:
                yield make_api(office)
            finally:
                office.closing.set()
    finally:
        audit.close()
