"""Who is told when the database has moved on: one watcher per open database, any number of followers.

SQLite tells whether another connection has committed (``PRAGMA data_version``); PostgreSQL sends a notice. Neither is
the truth: after every sign, after every reconnection and once a second in any case the numbers are read again.

The watcher starts with the first follower. Its states: connecting, watching, and, when the database is away, pausing
before it connects again. It ends when the database is closed, and with it every follower.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import aiosqlite

from outfitter.storage.registry.address import Address
from outfitter.storage.registry.store import CHANNEL, Counter

_GLANCE = 0.1
_POLL = 0.8
_PAUSE = 0.2
_NUMBERS = "SELECT name, value FROM counters"


class Watch:
    """The newest known numbers of a database, and those who wait for them to move."""

    __slots__ = ("_address", "_closing", "_is_closed", "_known", "_news", "_task")

    def __init__(self, address: Address) -> None:
        self._address = address
        self._known: dict[str, int] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._closing = asyncio.Event()

    def heard(self, counter: Counter, value: int) -> None:
        """A commit of our own has moved a number."""
        self._learn({counter: value})

    async def follow(self, counter: Counter) -> AsyncGenerator[int]:
        """The number now, then whenever it has moved."""
        if self._task is None and not self._is_closed:
            self._task = asyncio.create_task(self._run(), name="watch of the registry")
        seen: int | None = None
        while not self._is_closed:
            news, value = self._news, self._known.get(counter)
            if value is not None and value != seen:
                seen = value
                yield value
            else:
                await news.wait()

    async def close(self) -> None:
        """End the watcher and every follower."""
        self._is_closed = True
        self._news.set()
        self._closing.set()
        if self._task is not None:
            if not self._address.is_sqlite:  # a file's driver works in a thread, which must not be left behind
                self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _learn(self, numbers: Mapping[str, int]) -> None:
        """Numbers only grow: a reading that was overtaken by a commit of our own is ignored."""
        newer = {name: value for name, value in numbers.items() if value > self._known.get(name, -1)}
        if newer:
            self._known |= newer
            self._news.set()
            self._news = asyncio.Event()

    async def _run(self) -> None:
        watching = partial(_watch_sqlite, closing=self._closing) if self._address.is_sqlite else _watch_postgres
        lost: tuple[type[Exception], ...] = (sqlite3.Error, OSError, ValueError)
        if not self._address.is_sqlite:
            lost = (*lost, import_module("psycopg").Error)
        while not self._closing.is_set():
            with suppress(*lost):
                async for numbers in watching(self._address):
                    self._learn(numbers)
            await _pause(self._closing, _PAUSE)


async def _pause(closing: asyncio.Event, seconds: float) -> None:
    """Wait so long, or until it closes."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await closing.wait()


async def _watch_sqlite(address: Address, closing: asyncio.Event) -> AsyncIterator[Mapping[str, int]]:
    """The numbers, whenever another connection has committed; ``mode=rw`` never makes a file."""
    where = f"{address.path.absolute().as_uri()}?mode=rw"
    async with aiosqlite.connect(where, uri=True, isolation_level=None, timeout=address.wait) as connection:
        seen: Any = None
        while not closing.is_set():
            version = await _fetch(connection, "PRAGMA data_version")
            if version != seen:
                seen = version
                yield dict(await _fetch(connection, _NUMBERS))
            await _pause(closing, _GLANCE)


async def _fetch(connection: aiosqlite.Connection, asked: str) -> list[Any]:
    async with connection.execute(asked) as cursor:
        return [tuple(row) for row in await cursor.fetchall()]


async def _watch_postgres(address: Address) -> AsyncIterator[Mapping[str, int]]:
    """The numbers, whenever a notice came, and from time to time without one: notices can be lost."""
    from psycopg import AsyncConnection

    seconds = max(2, round(address.wait))
    async with await AsyncConnection.connect(address.dsn, autocommit=True, connect_timeout=seconds) as connection:
        await connection.execute(f"LISTEN {CHANNEL}")
        while True:
            async with asyncio.timeout(address.wait):
                found = await (await connection.execute(_NUMBERS)).fetchall()
            yield {str(name): int(value) for name, value in found}
            async for _ in connection.notifies(timeout=_POLL, stop_after=1):
                pass
