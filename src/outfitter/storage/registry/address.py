"""Which database is meant: a SQLite file or a PostgreSQL server, one driver each.

An address is written as a URL: ``sqlite:////var/lib/outfitter/registry.db`` or ``postgresql://user@host/name``. What is
shown of it never holds the password.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from outfitter.errors import Invalid, StorageUnavailable
from outfitter.storage.registry.driver import connect

WRITES = "outfitter_writes"
_SQLITE, _POSTGRES = "sqlite", "postgresql"
_HOW = "write sqlite:////path/registry.db or postgresql://user@host/name"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database is, and how long anybody waits for it."""

    url: URL
    wait: float

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file."""
        return self.url.get_backend_name() == _SQLITE

    @property
    def path(self) -> Path:
        """The file of a SQLite database."""
        return Path(self.url.database or "")

    @property
    def shown(self) -> str:
        """The address as people may see it."""
        return str(self.path) if self.is_sqlite else self.url.render_as_string(hide_password=True)

    @property
    def dsn(self) -> str:
        """The address for the PostgreSQL driver itself, password included: never to be shown."""
        return self.url.set(drivername=_POSTGRES).render_as_string(hide_password=False)

    def moved(self, path: Path) -> Address:
        """The same with another file."""
        return Address(self.url.set(database=str(path)), self.wait)


def read_address(url: str, wait: float) -> Address:
    """The address that a URL means."""
    try:
        found = make_url(url)
    except (ArgumentError, ValueError):
        raise Invalid("this is no address of a database", hint=_HOW) from None
    backend = found.drivername.partition("+")[0].replace("postgres", _POSTGRES).replace("postgresqlql", _POSTGRES)
    if backend == _SQLITE and found.database not in {None, "", ":memory:"}:
        return Address(found.set(drivername=_SQLITE), wait)
    if backend == _POSTGRES:
        if find_spec("psycopg") is None:
            hint = "pip install 'outfitter[postgres]'"
            raise StorageUnavailable("the driver for PostgreSQL is not installed", hint=hint)
        return Address(found.set(drivername=_POSTGRES), wait)
    raise Invalid(f"no database can be kept at a '{found.drivername}' address", hint=_HOW)


def open_engine(address: Address) -> AsyncEngine:
    """The engine that serves requests."""
    if address.is_sqlite:
        url = address.url.set(drivername="sqlite+aiosqlite")
        engine = create_async_engine(
            url,
            connect_args=_sqlite_arguments(address) | {"async_creator_fn": connect},
            hide_parameters=True,
            pool_size=8,
            pool_timeout=address.wait,
        )
        _tune_sqlite(engine.sync_engine, journal="WAL")
        return engine
    return create_async_engine(
        address.url.set(drivername="postgresql+psycopg"),
        connect_args=_postgres_arguments(address),
        hide_parameters=True,
        pool_pre_ping=True,  # a connection from before a restart of the server is replaced, not handed out
        pool_size=8,
        pool_timeout=address.wait,
    )


def open_plain_engine(address: Address, *, journal: str = "WAL") -> Engine:
    """An engine without an event loop, one connection at a time: for migrations."""
    if address.is_sqlite:
        url = address.url.set(drivername="sqlite+pysqlite")
        engine = create_engine(url, connect_args=_sqlite_arguments(address), hide_parameters=True, poolclass=NullPool)
        _tune_sqlite(engine, journal=journal)
        return engine
    url = address.url.set(drivername="postgresql+psycopg")
    return create_engine(url, connect_args=_postgres_arguments(address), hide_parameters=True, poolclass=NullPool)


def _sqlite_arguments(address: Address) -> dict[str, Any]:
    return {"timeout": address.wait, "isolation_level": None}


def _postgres_arguments(address: Address) -> dict[str, Any]:
    seconds = max(2, round(address.wait))
    return {
        "connect_timeout": seconds,
        "keepalives_idle": seconds,
        "keepalives_interval": seconds,
        "tcp_user_timeout": 2 * seconds * 1000,
        "options": f"-c lock_timeout={round(address.wait * 1000)}",
    }


def _tune_sqlite(engine: Engine, *, journal: str) -> None:
    """Every connection: what is acknowledged is on disk, and a transaction begins when and how we say."""

    def connected(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's connection, or its adapter
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA journal_mode = {journal}")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.close()

    def begun(connection: Connection) -> None:
        # A writer takes its lock first: it waits its turn, where one that read before would fail.
        is_writer = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
