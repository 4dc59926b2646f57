"""Which keys a database belongs to, and how it changes to a new key.

The database remembers one sealed word. The key file must open it, so a lost, foreign or empty key file is noticed at
the start and not when the first secret is needed. A lost file beside a SQLite file without sealed values is no loss.
"""

from __future__ import annotations

from sqlalchemy import Table, bindparam, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from outfitter.errors import StorageUnavailable
from outfitter.storage.registry.sealing import MARK
from outfitter.storage.registry.store import Store
from outfitter.storage.registry.tables import changes, entries, meta, runs, sessions

_HOW = "it is in your backup, or on the machine that made the database"
_NAME, _WORD, _PLACE = "key_check", b"outfitter", b"key_check"
# Where sealed literals can be: the table, its columns, and the kind they are bound to when no column says it.
_PLACES: tuple[tuple[Table, tuple[str, ...], str | None], ...] = (
    (entries, ("document",), None),
    (changes, ("before", "after"), None),
    (runs, ("mcp_headers",), "runs"),
    (sessions, ("plan",), "sessions"),
)


async def settle_keys(store: Store) -> None:
    """Make the key file of a new database, or make sure that the file is the right one."""
    if store.keys.exists():
        store.keys.newest()  # a file that cannot be used is told as what it is
    async with store.reading() as connection:
        check = await _read_check(connection)
    if check is not None and store.keys.exists() and store.keys.opens(check, _PLACE):
        return
    async with store.writing("revision") as turn:
        check = await _read_check(turn.connection)  # again, now that nobody else can write it
        if check is not None:
            await _refuse(store, turn.connection, check)
        if not store.keys.exists():
            store.keys.create()
        await _write_check(store, turn.connection)


async def rotate_keys(store: Store) -> str:
    """Add a key and seal everything again with it, in one transaction; answers the id of the key."""
    async with store.writing("revision") as turn:
        name = store.keys.add()
        for table, columns, kind in _PLACES:
            await _reseal(store, turn.connection, (table, columns, kind))
        await _write_check(store, turn.connection)
    return name


async def _refuse(store: Store, connection: AsyncConnection, check: str) -> None:
    where = str(store.keys.path)
    if store.keys.exists():
        if not store.keys.opens(check, _PLACE):
            message = "the key file does not belong to this database"
            raise StorageUnavailable(message, where=where, hint=f"put the right one back; {_HOW}")
    elif await _has_sealed(connection):
        message = "the database holds sealed values and the key file is missing"
        raise StorageUnavailable(message, where=where, hint=f"put it back; {_HOW}")
    elif not store.address.is_sqlite:
        # Here another machine may have the file: two with different keys could not read each other's values.
        message = "the key file is missing, and this database was opened with one"
        hint = f"put it back; {_HOW}. If it is lost, delete 'key_check' from the table 'meta': nothing is sealed yet"
        raise StorageUnavailable(message, where=where, hint=hint)


async def _read_check(connection: AsyncConnection) -> str | None:
    return (await connection.execute(select(meta.c.value).where(meta.c.name == _NAME))).scalar_one_or_none()


async def _write_check(store: Store, connection: AsyncConnection) -> None:
    await connection.execute(delete(meta).where(meta.c.name == _NAME))
    await connection.execute(insert(meta).values(name=_NAME, value=store.keys.seal(_WORD, _PLACE)))


async def _has_sealed(connection: AsyncConnection) -> bool:
    for table, columns, _ in _PLACES:
        asked = select(table.c[columns[0]]).where(_is_sealed(table, columns)).limit(1)
        if (await connection.execute(asked)).first() is not None:
            return True
    return False


def _is_sealed(table: Table, columns: tuple[str, ...]):  # noqa: ANN202 - SQLAlchemy's own type of a condition
    return or_(*(table.c[name].contains(MARK, autoescape=True) for name in columns))


async def _reseal(store: Store, connection: AsyncConnection, place: tuple[Table, tuple[str, ...], str | None]) -> None:
    table, columns, kind = place
    keys = [column.name for column in table.primary_key.columns]
    rows = (await connection.execute(select(table).where(_is_sealed(table, columns)))).mappings().all()
    again = [
        {f"key_{name}": row[name] for name in keys}
        | {
            name: store.sealer(kind or row["kind"], row["id"]).reseal(row[name]) if row[name] else row[name]
            for name in columns
        }
        for row in rows
    ]
    if again:
        here = [table.c[name] == bindparam(f"key_{name}") for name in keys]
        await connection.execute(update(table).where(*here).values({name: bindparam(name) for name in columns}), again)
