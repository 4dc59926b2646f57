"""How the parts of the database read and write: connections, turns, waits, and what their errors mean.

A reader sees one state and never waits for a writer. Writers take turns over all processes: SQLite has one writer at a
time, PostgreSQL locks the row of the number that a writer moves. What a ``writing`` block did is kept when it ends,
safely on disk, and is as if it had never been when it ends with an error.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

import anyio
from sqlalchemy import bindparam, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from outfitter.errors import StorageUnavailable
from outfitter.storage.registry.address import WRITES, Address
from outfitter.storage.registry.keys import KeyRing
from outfitter.storage.registry.sealing import Sealer
from outfitter.storage.registry.tables import counters

Counter = Literal["revision", "tokens", "events", "runs"]
COUNTERS: tuple[Counter, ...] = ("revision", "tokens", "events", "runs")
CHANNEL: Final = "outfitter_registry"
# Statements of every turn: built once, for SQLAlchemy takes longer to build one than SQLite to execute it.
_MINE = counters.c.name == bindparam("counter")
_TAKE = select(counters.c.value).where(_MINE).with_for_update()
_ADD = update(counters).where(_MINE).values(value=counters.c.value + bindparam("by")).returning(counters.c.value)
_SET = update(counters).where(_MINE).values(value=bindparam("now"))
_NOTIFY = text("SELECT pg_notify(:channel, '')")


@dataclass(slots=True)
class Store:
    """One open database, as its parts use it. ``heard`` is told of every number that a commit of ours has moved."""

    address: Address
    engine: AsyncEngine
    keys: KeyRing
    now: Callable[[], str]
    heard: Callable[[Counter, int], None]
    _turns: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    def sealer(self, kind: str, name: str) -> Sealer:
        """What seals and opens the literals of one record."""
        return Sealer(self.keys, kind, name)

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[AsyncConnection]:
        """A connection that sees one state of the database. Short and bounded: it is not broken off half way."""
        with _translated(self.address), anyio.CancelScope(shield=True):
            async with self.engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self, counter: Counter) -> AsyncGenerator[Turn]:
        """The turn of one writer. Who waits for it may give up; once it has begun it is not broken off half way."""
        with _translated(self.address):
            async with self._queued(counter), self._begun(counter) as turn:
                yield turn
        if turn.moved:
            self.heard(counter, turn.value + 1)
        for other, value in turn.others.items():
            self.heard(other, value)

    @asynccontextmanager
    async def _begun(self, counter: Counter) -> AsyncGenerator[Turn]:
        """The transaction of a turn.

        A statement that is cut off can leave its connection, and the lock of all writers, to the garbage collector.
        """
        with anyio.CancelScope(shield=True):
            async with self.engine.connect() as connection:
                await connection.execution_options(**{WRITES: True})
                async with connection.begin():
                    turn = await self._take(connection, counter)
                    yield turn
                    await self._number(turn)

    async def move(self, turn: Turn, counter: Counter, by: int = 1) -> int:
        """Move another number in the same turn; what it was. ``runs`` is taken first: nobody waits in a circle."""
        now = int((await turn.connection.execute(_ADD, {"counter": counter, "by": by})).scalar_one())
        turn.others[counter] = now
        return now - by

    @asynccontextmanager
    async def _queued(self, counter: Counter) -> AsyncGenerator[None]:
        """Writers of this process queue here, in order and without a connection; others' are waited for in there."""
        turn = self._turns["" if self.address.is_sqlite else counter]
        try:
            async with asyncio.timeout(self.address.wait):
                await turn.acquire()
        except TimeoutError:
            raise _busy(self.address.shown) from None
        try:
            yield
        finally:
            turn.release()

    @staticmethod
    async def _take(connection: AsyncConnection, counter: Counter) -> Turn:
        return Turn(connection, counter, await _read(connection, counter))

    async def _number(self, turn: Turn) -> None:
        """Move the number if anything was written, and tell the other processes, all in the same transaction."""
        if turn.moved:
            await turn.connection.execute(_SET, {"counter": turn.counter, "now": turn.value + 1})
        if (turn.moved or turn.others) and not self.address.is_sqlite:
            await turn.connection.execute(_NOTIFY, {"channel": CHANNEL})


@dataclass(slots=True)
class Turn:
    """What a writer holds: its connection, and the number it may move by one."""

    connection: AsyncConnection
    counter: Counter
    value: int
    moved: bool = False
    others: dict[Counter, int] = field(default_factory=dict[Counter, int])
    """Other numbers that were moved in the same transaction, as they are then."""


async def _read(connection: AsyncConnection, counter: Counter) -> int:
    """A number, which nobody else moves before this transaction ends."""
    return int((await connection.execute(_TAKE, {"counter": counter})).scalar_one())


@contextmanager
def _translated(address: Address) -> Generator[None]:
    """Turn what the drivers raise into StorageUnavailable, without a word of what was written."""
    try:
        yield
    except PoolTimeout:
        raise _busy(address.shown) from None
    except DBAPIError as error:
        raise told(error.orig or error, address.shown) from None


def told(error: BaseException, where: str) -> StorageUnavailable:
    """The error of a driver as ours: its first line, which names no value."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if "database is locked" in said or type(error).__name__ == "LockNotAvailable":
        return _busy(where)
    return StorageUnavailable(f"the database does not answer: {said}", where=where)


def _busy(where: str) -> StorageUnavailable:
    hint = "try again; if it stays so, a program holds the database"
    return StorageUnavailable("the database is busy", where=where, hint=hint)
