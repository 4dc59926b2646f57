"""The file of a SQLite database: made whole or not at all, looked through before it is used, copied before a migration.

A file that is damaged, cut short or empty is refused and its copies are named: the registry never starts empty where
there was one.
"""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from outfitter.errors import StorageUnavailable
from outfitter.storage.registry.address import Address, open_plain_engine
from outfitter.storage.registry.keys import put_in_place
from outfitter.storage.registry.migrating import bring_up_to_date
from outfitter.storage.registry.migrations import VERSION_TABLE

_COPY = ".before-"
_IS_OURS = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"


def prepare_file(address: Address) -> None:
    """Make sure that there is a sound database of the newest version at this place."""
    try:
        address.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not address.path.exists():
            _make(address)
        _check(address)
        _migrate(address)
    except OSError as error:
        raise StorageUnavailable(f"cannot be opened: {error.strerror or error}", where=str(address.path)) from None


def _make(address: Address) -> None:
    """A new database under another name, which it gets when it is complete; two who make one at once get the same."""
    path = address.path
    if Path(f"{path}-wal").exists():
        raise _refused(path, "the database is gone and its log is still there")
    staged = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    staged.touch(0o600)
    try:
        engine = open_plain_engine(address.moved(staged), journal="DELETE")
        bring_up_to_date(engine, str(path), lambda _: None)
        engine.dispose()
        put_in_place(staged, path, is_first=True)
    finally:
        for name in (staged, Path(f"{staged}-journal")):
            name.unlink(missing_ok=True)


def _check(address: Address) -> None:
    """Look the whole file through without writing to it; a busy one is not a broken one."""
    path = address.path
    if _is_cut_short(path):
        raise _refused(path, "the database is damaged: its last page is cut short")
    try:
        with closing(sqlite3.connect(path, timeout=address.wait)) as connection:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            is_ours = connection.execute(_IS_OURS, (VERSION_TABLE,)).fetchone() is not None
    except sqlite3.OperationalError as error:
        raise _damaged_or_busy(path, error) from None
    except sqlite3.DatabaseError as error:
        raise _refused(path, f"the database is damaged: {error}") from None
    if said != "ok":
        raise _refused(path, f"the database is damaged: {said.splitlines()[0]}")
    if not is_ours:
        raise _refused(path, "there is a file, and it is not a registry")


def _is_cut_short(path: Path) -> bool:
    """Whether the last page is not whole, which SQLite fills with zeros and says nothing.

    With a log beside it a writer was interrupted; the log then has the page.
    """
    if Path(f"{path}-wal").exists():
        return False
    with path.open("rb") as file:
        size_of_page = int.from_bytes(file.read(18)[16:], "big")
    return size_of_page > 1 and path.stat().st_size % size_of_page != 0


def _migrate(address: Address) -> None:
    path, engine = address.path, open_plain_engine(address)
    try:
        bring_up_to_date(engine, str(path), lambda before: _copy(path, before))
    except DBAPIError as error:
        raise _damaged_or_busy(path, error.orig or error) from None
    finally:
        engine.dispose()


def _copy(path: Path, version: str) -> None:
    """A copy of the database as it is before a migration."""
    place = path.with_name(f"{path.name}{_COPY}{version}")
    staged = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    staged.touch(0o600)
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(staged)) as copy:
            source.backup(copy)
        put_in_place(staged, place, is_first=False)
    finally:
        staged.unlink(missing_ok=True)


def _damaged_or_busy(path: Path, error: BaseException) -> StorageUnavailable:
    if "locked" in str(error) or "busy" in str(error):
        return StorageUnavailable("the database is busy", where=str(path), hint="end the program that holds it")
    return _refused(path, f"the database cannot be read: {error}")


def _refused(path: Path, message: str) -> StorageUnavailable:
    copies = sorted(path.parent.glob(f"{path.name}{_COPY}*"))
    named = f"restore it: the newest copy here is {copies[-1]}" if copies else "restore it from your backup"
    return StorageUnavailable(message, where=str(path), hint=f"{named}; to begin anew, move the file away")
