"""SQLite's driver with one change of threads for a statement.

aiosqlite works in a thread of its own, and SQLAlchemy's adapter goes there four times for a statement: for a cursor, to
execute, to fetch and to close. Here it goes once and comes back with everything. A ``BEGIN`` travels with the statement
after it. Everything else is aiosqlite's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import aiosqlite

_CHUNK = 64


class OneTripConnection(aiosqlite.Connection):
    """A connection whose cursors bring all rows with them."""

    begin: str = ""
    """How the transaction begins that was asked for and has not begun yet."""

    def cursor(self) -> OneTripCursor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A cursor, without asking the thread."""
        return OneTripCursor(self)

    async def commit(self) -> None:
        """Keep what was done; a transaction that has not begun has nothing to keep."""
        if not self._forgot():
            await super().commit()

    async def rollback(self) -> None:
        """Undo what was done; a transaction that has not begun has nothing to undo."""
        if not self._forgot():
            await super().rollback()

    def _forgot(self) -> bool:
        waiting, self.begin = self.begin, ""
        return bool(waiting)

    async def there(self, what: Callable[[sqlite3.Connection], Any]) -> Any:  # noqa: ANN401 - whatever it answers
        """Do something in the thread, in the transaction that was asked for."""
        begin, self.begin = self.begin, ""
        return await self._execute(partial(_do, begin, self._conn, what))  # pyright: ignore[reportUnknownMemberType]


def _do(begin: str, connection: sqlite3.Connection, what: Callable[[sqlite3.Connection], Any]) -> Any:  # noqa: ANN401 - see ``there``
    if begin:
        connection.execute(begin)
    return what(connection)


class OneTripCursor:
    """What SQLAlchemy's adapter needs of a cursor."""

    __slots__ = ("_connection", "_rows", "arraysize", "description", "lastrowid", "rowcount")

    def __init__(self, connection: OneTripConnection) -> None:
        """Nothing was executed yet."""
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.arraysize = 1

    async def __aenter__(self) -> Self:
        """There is nothing to open."""
        return self

    async def execute(self, sql: str, parameters: Any = ()) -> Self:  # noqa: ANN401 - what the driver takes
        """Execute a statement and fetch what it finds."""
        if sql.startswith("BEGIN"):
            self._connection.begin = sql
            return self
        return await self._went(lambda connection: connection.execute(sql, parameters))

    async def executemany(self, sql: str, parameters: Sequence[Any]) -> Self:
        """Execute a statement for many rows."""
        return await self._went(lambda connection: connection.executemany(sql, parameters))

    async def fetchall(self) -> list[Any]:
        """What was found."""
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        """There is nothing left to close."""

    async def _went(self, what: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> Self:
        found = await self._connection.there(lambda connection: _all_of(what(connection)))
        self._rows, self.description, self.rowcount, self.lastrowid = found
        return self


def _all_of(cursor: sqlite3.Cursor) -> tuple[list[Any], Any, int, int | None]:
    try:
        rows = cursor.fetchall() if cursor.description else []
        return rows, cursor.description, cursor.rowcount, cursor.lastrowid
    finally:
        cursor.close()


def connect(database: str, **arguments: Any) -> OneTripConnection:  # noqa: ANN401 - what sqlite3 takes
    """A connection that is open once it was waited for."""
    connection = OneTripConnection(partial(sqlite3.connect, database, **arguments), _CHUNK)
    # A program that is told to end does not wait for a thread; the thread was the connection itself before 0.22.
    thread: Any = getattr(connection, "_thread", connection)
    thread.daemon = True
    return connection
