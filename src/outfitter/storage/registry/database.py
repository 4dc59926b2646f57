"""Opening the registry's database: the address, the file, the tables, the keys, then the parts that use them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.exc import DBAPIError

from outfitter.storage.registry.address import Address, open_engine, open_plain_engine, read_address
from outfitter.storage.registry.events import Events
from outfitter.storage.registry.executing import Executing
from outfitter.storage.registry.file import prepare_file
from outfitter.storage.registry.keys import KeyRing
from outfitter.storage.registry.migrating import bring_up_to_date
from outfitter.storage.registry.pruning import Pruning
from outfitter.storage.registry.registry import Registry
from outfitter.storage.registry.runners import Runners
from outfitter.storage.registry.runs import Runs
from outfitter.storage.registry.sealed import rotate_keys, settle_keys
from outfitter.storage.registry.store import Store, told
from outfitter.storage.registry.tokens import ApiTokens
from outfitter.storage.registry.watching import Watch

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Database:
    """An open database and its parts."""

    registry: Registry
    runs: Runs
    tokens: ApiTokens
    events: Events
    executing: Executing
    runners: Runners
    pruning: Pruning
    _store: Store

    @property
    def shown(self) -> str:
        """Its address as people may see it."""
        return self._store.address.shown

    async def rotate(self) -> str:
        """Add a key and seal everything again with it, as no change of any entry; answers the id of the new key."""
        return await rotate_keys(self._store)


@asynccontextmanager
async def open_database(
    url: str,
    keys: KeyRing,
    *,
    wait: float = 5.0,
    kept_events: int = 100_000,
    now: Callable[[], str] | None = None,
) -> AsyncGenerator[Database]:
    """Open the database at a URL, up to date and with its keys; StorageUnavailable when it must not be used.

    ``wait`` is how many seconds a writer waits for its turn, and anybody for the server.
    """
    address = read_address(url, wait)
    await asyncio.to_thread(_prepare, address)
    engine, watch = open_engine(address), Watch(address)
    try:
        store = Store(address, engine, keys, now or _utc_now, watch.heard)
        await settle_keys(store)
        tokens, events, runners = ApiTokens(store, watch), Events(store, watch, kept_events), Runners(store)
        runs, executing = Runs(store, watch, tokens, events), Executing(store, tokens, events, runners)
        yield Database(Registry(store, watch), runs, tokens, events, executing, runners, Pruning(store), store)
    finally:
        await watch.close()
        await engine.dispose()


def _prepare(address: Address) -> None:
    if address.is_sqlite:
        prepare_file(address)
        return
    engine = open_plain_engine(address)
    try:
        bring_up_to_date(engine, address.shown, _tell_no_copy)
    except DBAPIError as error:
        raise told(error.orig or error, address.shown) from None
    finally:
        engine.dispose()


def _tell_no_copy(version: str) -> None:
    """A file is copied before its tables are changed. Here every step is a transaction, and a copy is its owner's."""
    _log.warning(
        "the database is brought up to date from version %s, step by step, each whole or undone; no copy of it is "
        "made here (pg_dump makes one)", version,
    )  # fmt: skip


def _utc_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
