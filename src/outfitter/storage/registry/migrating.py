"""Bringing the tables up to date: step by step, each in a transaction of its own, under a lock over all processes.

A process that dies in a step leaves the database as it was before the step; the next start goes on from there. A
database that a newer program has made is refused. Alembic is loaded only when there is something to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from outfitter.errors import StorageUnavailable
from outfitter.storage.registry.address import WRITES
from outfitter.storage.registry.migrations import VERSION_TABLE, VERSIONS

_SCRIPTS = Path(__file__).parent / "migrations"
# Alembic keeps the step under way in a global of its own: one thread of a process at a time.
_ALONE = threading.Lock()
_LOCK = 7_083_221_904  # any number that is the same in every process


def bring_up_to_date(engine: Engine, where: str, save: Callable[[str], None]) -> None:
    """Take every step that is missing; ``save`` is called with the version before the first one, if there is any."""
    with engine.connect() as connection:
        version = read_version(connection)
    if version == VERSIONS[-1]:
        return
    if version is not None:
        check_known(version, where)
        save(version)
    for target in VERSIONS:
        _step(engine, target, where)


def read_version(connection: Connection) -> str | None:
    """The step that the database has reached; None when it has no tables of ours."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()  # noqa: S608 - a constant


def check_known(version: str, where: str) -> None:
    """Refuse a database that a newer program has made."""
    if version not in VERSIONS:
        message = f"the database is of version '{version}', this program knows versions up to {VERSIONS[-1]}"
        raise StorageUnavailable(message, where=where, hint="start the newer program that made it, or restore a backup")


def _step(engine: Engine, target: str, where: str) -> None:
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        version = read_version(connection)  # again, now that nobody else can move it
        if version is not None:
            check_known(version, where)
            if VERSIONS.index(version) >= VERSIONS.index(target):
                return
        _run_alembic(connection, target)


def _run_alembic(connection: Connection, target: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with _ALONE:
        command.upgrade(config, target)
