"""Where this machine's registry is: a file of the state folder, or the PostgreSQL that the settings name.

Neighbours: ``service`` runs it beside the gateway, ``local_api`` and the commands of files open it for a moment.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from outfitter.app.settings import Settings
from outfitter.basics import Secret

if TYPE_CHECKING:
    from outfitter.coordinator import Coordinator, Files

DATABASE, KEYS = "registry.sqlite", "registry.keys"
_LIBRARIES = ("aiosqlite", "alembic", "cryptography", "jwt", "sqlalchemy", "starlette")


def can_have_registry() -> bool:
    """Whether the libraries of the extra ``service`` are installed."""
    return all(find_spec(library) is not None for library in _LIBRARIES)


def has_registry(settings: Settings) -> bool:
    """Whether there is a registry here, without opening it."""
    return settings.database is not None or (settings.state / DATABASE).exists()


def registry_url(settings: Settings) -> str:
    """The address of the registry's database, for whoever connects: with its password, if it has one."""
    if settings.database is not None:
        return reveal_url(settings.database)
    return f"sqlite:///{(settings.state / DATABASE).absolute()}"


def reveal_url(database: Secret) -> str:
    """The address of a database for whoever connects: with its password, if it has one."""
    return database.reveal()


def registry_mark(settings: Settings) -> str:
    """What stands for the database in files that remember something about it."""
    return hashlib.sha256(registry_url(settings).encode()).hexdigest()


@asynccontextmanager
async def open_registry(settings: Settings) -> AsyncGenerator[Coordinator]:
    """The use cases of this machine's registry; a first use makes the database."""
    from outfitter.coordinator import open_coordinator
    from outfitter.storage import KeyRing, open_database

    async with (
        open_database(registry_url(settings), KeyRing(settings.state / KEYS)) as database,
        open_coordinator(database) as coordinator,
    ):
        yield coordinator


@asynccontextmanager
async def open_files(settings: Settings) -> AsyncGenerator[Files]:
    """What brings files into this machine's registry, and out of it."""
    from outfitter.coordinator import Files

    async with open_registry(settings) as coordinator:
        yield Files(coordinator.entries, coordinator.live)


async def rotate_keys(settings: Settings) -> dict[str, str]:
    """Seal everything in this machine's registry with a new key: its id, and the file it is in."""
    from outfitter.errors import NotFound
    from outfitter.storage import KeyRing, open_database

    if not has_registry(settings):
        raise NotFound("there is no registry here", where=str(settings.state), hint="outfitter up makes one")
    keys = KeyRing(settings.state / KEYS)
    async with open_database(registry_url(settings), keys) as database:
        return {"key": await database.rotate(), "file": str(keys.path)}
