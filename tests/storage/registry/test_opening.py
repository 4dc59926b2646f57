"""Opening: migrations that are killed, databases that are damaged, newer, foreign, or made by two at once."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command

from outfitter.errors import Invalid, StorageUnavailable
from outfitter.storage import KeyRing, open_database
from tests.storage.registry.olden import alembic_of, engine_of, make_olden
from tests.storage.registry.places import Place, put, read_line, server

pytestmark = pytest.mark.anyio


def _migrated(place: Place, version: str) -> None:
    """A database as an older program has left it, with an entry in it."""
    place.folder.mkdir(exist_ok=True)
    make_olden(place.url, version)


@pytest.mark.promise("REGISTRY-MIGRATION")
async def test_a_migration_that_is_killed_at_any_step_goes_on_or_was_never_begun(place: Place) -> None:
    _migrated(place, "0001")
    child = place.start("migrate_killed", str(place.file) if place.is_file else place.url)
    steps = await asyncio.to_thread(read_line, child)
    with child:
        assert child.wait(60) == 0
    assert isinstance(steps, int), steps
    assert steps > 15


@pytest.mark.promise("REGISTRY-MIGRATION")
async def test_an_older_database_is_copied_then_brought_up_to_date(place: Place) -> None:
    _migrated(place, "0002")
    async with place.open() as base:
        assert [entry.id for entry in await base.registry.entries()] == ["kept"]
        await base.events.append("k", "s", {})
    if place.is_file:
        copy = place.folder / "registry.db.before-0002"
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("SELECT id FROM entries").fetchall() == [("kept",)]
            assert connection.execute("SELECT version_num FROM outfitter_version").fetchall() == [("0002",)]


@pytest.mark.promise("REGISTRY-MIGRATION")
async def test_a_database_of_a_newer_program_is_refused_and_left_alone(place: Place) -> None:
    async with place.open() as base:
        await put(base.registry, server("x"))
    place.run("UPDATE outfitter_version SET version_num = '9999'")
    before = place.dump()
    with pytest.raises(StorageUnavailable, match="'9999'"):
        async with place.open():
            pass
    assert place.dump() == before


async def test_many_may_open_a_new_database_at_once(place: Place) -> None:
    async def write(name: str) -> None:
        async with place.open() as base:
            await put(base.registry, server(name))

    await asyncio.gather(*(write(name) for name in "abcd"))
    async with place.open() as base:
        assert [entry.id for entry in await base.registry.entries()] == ["a", "b", "c", "d"]
    names = {path.name for path in place.folder.iterdir()}
    assert names == ({"registry.db", "registry.keys"} if place.is_file else {"registry.keys"})


async def test_the_steps_lead_to_the_tables_that_the_program_uses(place: Place) -> None:
    async with place.open():
        pass
    engine = engine_of(place.url)
    with engine.begin() as connection:
        command.check(alembic_of(connection))
    engine.dispose()


@pytest.fixture
async def made(tmp_path: Path) -> Place:
    """A sound file with some pages in it, closed."""
    place = Place(f"sqlite:///{tmp_path}/state/registry.db", tmp_path / "state")
    async with place.open() as base, base.registry.changing("ann") as writing:
        for number in range(50):
            await writing.put(server(f"s{number}", text="x" * 2000))
    return place


async def _refused(place: Place) -> str:
    before = place.file.read_bytes()
    with pytest.raises(StorageUnavailable) as caught:
        async with place.open():
            pass
    assert place.file.read_bytes() == before, "a damaged file is left as it is"
    return str(caught.value)


@pytest.mark.promise("REGISTRY-DAMAGED")
async def test_a_file_that_was_cut_short_is_refused_and_never_starts_empty(made: Place) -> None:
    whole = made.file.read_bytes()
    for size in (0, 1, 50, 100, 4095, 4096, 8192, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        made.file.write_bytes(whole[:size])
        assert "restore it from your backup" in await _refused(made), size
    made.file.write_bytes(whole)
    async with made.open() as base:
        assert len(await base.registry.entries()) == 50


@pytest.mark.promise("REGISTRY-DAMAGED")
async def test_a_damaged_file_is_refused_and_its_copy_is_named(made: Place) -> None:
    shutil.copy(made.file, made.folder / "registry.db.before-0002")
    whole = made.file.read_bytes()
    for page in (0, 1, 2, 5):
        made.file.write_bytes(whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :])
        assert "registry.db.before-0002" in await _refused(made), page
    made.file.write_text("this is a text\n" * 1000)
    assert "registry.db.before-0002" in await _refused(made)


@pytest.mark.promise("REGISTRY-DAMAGED")
async def test_a_file_of_something_else_is_refused(made: Place) -> None:
    made.file.unlink()
    with closing(sqlite3.connect(made.file)) as other, other:
        other.execute("CREATE TABLE mine (x)")
    assert "it is not a registry" in await _refused(made)
    made.file.unlink()
    made.file.with_name("registry.db-wal").write_bytes(b"something")
    with pytest.raises(StorageUnavailable, match="its log is still there"):
        async with made.open():
            pass
    assert not made.file.exists()


async def test_only_the_owner_can_read_the_file(made: Place) -> None:
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "url", ["", "nonsense", "sqlite://", "sqlite:///:memory:", "mysql://u:CNRY@h/d", "postgresx://h"]
)
async def test_an_address_that_is_none_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid) as caught:
        async with open_database(url, KeyRing(tmp_path / "keys")):
            pass
    assert "CNRY" not in str(caught.value)


async def test_a_server_that_is_not_there_is_told_without_its_password(tmp_path: Path) -> None:
    url = "postgres://user:CNRY@127.0.0.1:1/base"
    with pytest.raises(StorageUnavailable) as caught:
        async with open_database(url, KeyRing(tmp_path / "keys"), wait=2):
            pass
    assert "127.0.0.1" in str(caught.value)
    assert "CNRY" not in str(caught.value)


def _python(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_door_of_storage_loads_no_database() -> None:
    heavy = "{'sqlalchemy', 'alembic', 'aiosqlite', 'cryptography', 'psycopg', 'sqlite3'}"
    assert _python(f"import sys, outfitter.storage; print({heavy} & set(sys.modules))") == "set()"


def test_without_the_extra_it_is_said_what_to_install() -> None:
    program = "import sys; sys.modules['sqlalchemy'] = None\ntry: from outfitter.storage import open_database\n"
    said = _python(f"{program}except Exception as error: print(type(error).__name__, error)")
    assert said == "StorageUnavailable the library 'sqlalchemy' is not installed (pip install 'outfitter[service]')"
