"""Databases as an older program has left them: made by the first steps of the migrations, with an entry in them."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, make_url
from sqlalchemy.pool import NullPool

from outfitter import storage

_SCRIPTS = Path(storage.__file__).parent / "registry" / "migrations"
_KEPT = (
    "INSERT INTO entries VALUES ('mcp-servers', 'kept', 'kept', 1, 'then', 'then', 'ann', NULL, "
    '\'{"id": "kept", "name": "kept", "url": "http://127.0.0.1:9/mcp"}\')'
)


def engine_of(url: str) -> Engine:
    """What runs a statement at a database, without the registry."""
    driver = "sqlite+pysqlite" if url.startswith("sqlite") else "postgresql+psycopg"
    return create_engine(make_url(url).set(drivername=driver), poolclass=NullPool)


def alembic_of(connection: Connection) -> Config:
    """The migrations, on a connection."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_SCRIPTS))
    config.set_main_option("path_separator", "os")
    return config


def make_olden(url: str, version: str) -> None:
    """Make a database of this version, with a server ``kept``."""
    engine = engine_of(url)
    with engine.begin() as connection:
        command.upgrade(alembic_of(connection), version)
        connection.exec_driver_sql(_KEPT)
    engine.dispose()
