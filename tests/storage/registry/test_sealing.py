"""Sealing at rest: no sensitive literal is written, a reference stays readable, keys rotate, a lost key is told."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from outfitter.errors import InvalidDocument, StorageUnavailable
from outfitter.storage import Put
from tests.storage.registry.places import Place, put, server
from tests.storage.registry.test_records import run, session

pytestmark = pytest.mark.anyio
CANARY = "CNRY-4f1d9c"
DOCUMENT = {
    "name": "x",
    "default_headers": {
        "X-API-Key": f"{CANARY} literal",
        "X-Other": "${OTHER_KEY}",
        "X-Ref": {"$secret": "vault-path"},
        "X-~a/b": {"deep": [f"{CANARY} deep", 1]},
    },
}
SEALED = frozenset({"/default_headers/X-API-Key", "/default_headers/X-~0a~1b"})
SECRET = Put("mcp-servers", "x", DOCUMENT, SEALED)


async def _filled(place: Place) -> None:
    async with place.open() as base:
        await put(base.registry, SECRET)
        await put(base.registry, replace(SECRET, document=DOCUMENT | {"name": "y"}))
        headers = {"docs": {"X-API-Key": CANARY}}
        asked = replace(run(1), mcp_headers=headers, sealed=frozenset({"/docs/X-API-Key"}))
        plan = {"servers": {"docs": {"headers": [CANARY]}}}
        await base.runs.add(asked, replace(session(1), plan=plan, sealed=frozenset({""})))


async def _is_open(place: Place) -> None:
    async with place.open() as base:
        entry = await base.registry.entry("mcp-servers", "x")
        assert entry is not None
        assert (entry.document, entry.sealed) == (DOCUMENT | {"name": "y"}, SEALED)
        past = await base.registry.past("mcp-servers", "x", 1)
        assert past is not None
        assert past.document == DOCUMENT
        asked, kept = await base.runs.get("r1"), await base.runs.session("s1")
        assert asked is not None
        assert kept is not None
        assert asked.mcp_headers == {"docs": {"X-API-Key": CANARY}}
        assert kept.plan == {"servers": {"docs": {"headers": [CANARY]}}}


@pytest.mark.promise("REGISTRY-SEALED")
async def test_no_sealed_literal_is_written_anywhere_and_references_stay_readable(place: Place) -> None:
    async with place.open() as base:
        await put(base.registry, SECRET)
        assert CANARY.encode() not in place.dump(), "also while the database is open"
    await _filled_after(place)
    written = place.dump()
    assert CANARY.encode() not in written
    assert b"${OTHER_KEY}" in written
    assert b"vault-path" in written
    async with place.open() as base:
        shown = json.dumps([change.after for change in await base.registry.changes()])
        assert CANARY not in shown
        assert "$sealed" in shown


async def _filled_after(place: Place) -> None:
    async with place.open() as base:
        await put(base.registry, server("x"))
    await _filled(place)


@pytest.mark.promise("REGISTRY-SEALED")
async def test_a_sealed_literal_opens_at_its_own_place_only(place: Place) -> None:
    async with place.open() as base:
        await put(base.registry, SECRET)
        (change,) = await base.registry.changes()
        assert change.after is not None
        with pytest.raises(InvalidDocument, match="does not open here"):
            await put(base.registry, Put("mcp-servers", "thief", change.after))
        moved = {"name": change.after["default_headers"]["X-API-Key"]}
        with pytest.raises(InvalidDocument, match="/name"):
            await put(base.registry, Put("mcp-servers", "x", moved))
        with pytest.raises(InvalidDocument, match="nothing to seal"):
            await put(base.registry, Put("mcp-servers", "x", {"a": 1}, frozenset({"/b"})))
        assert len(await base.registry.changes()) == 1


@pytest.mark.promise("REGISTRY-ROTATION")
async def test_rotation_seals_everything_with_a_new_key_and_is_no_change(place: Place) -> None:
    await _filled(place)
    old = json.loads(place.key_file.read_text())["keys"][0]["id"].encode()
    assert old in place.dump()
    async with place.open() as other, place.open() as base:
        before = (await base.registry.revision(), len(await base.registry.changes()))
        name = await base.rotate()
        assert (await base.registry.revision(), len(await base.registry.changes())) == before
        assert await other.registry.entry("mcp-servers", "x") == await base.registry.entry("mcp-servers", "x")
        await put(other.registry, replace(SECRET, id="later"))
        async with other.registry.changing("ann") as writing:
            assert await writing.entry("mcp-servers", "later") is not None
        newest = (await base.registry.changes(newest_first=True))[0].after
        assert newest is not None
        assert newest["default_headers"]["X-API-Key"]["$sealed"].startswith(f"{name}.")
    rows = place.dump()
    if not place.is_file:  # a file keeps what was in its pages, sealed, until they are used again
        assert old not in rows
    assert CANARY.encode() not in rows
    await _is_open(place)
    keys = json.loads(place.key_file.read_text())
    place.key_file.write_text(json.dumps({"keys": keys["keys"][1:]}))
    await _is_open(place)


@pytest.mark.promise("REGISTRY-KEY-LOST")
async def test_a_missing_or_foreign_key_file_is_refused_beside_sealed_values(place: Place, tmp_path: Path) -> None:
    await _filled(place)
    assert stat.S_IMODE(place.key_file.stat().st_mode) == 0o600
    kept = place.key_file.rename(tmp_path / "kept")
    with pytest.raises(StorageUnavailable, match="the key file is missing"):
        await _is_open(place)
    assert not place.key_file.exists(), "no new key is made beside sealed values"
    async with Place(f"sqlite:///{tmp_path}/other/registry.db", tmp_path / "other").open():
        (tmp_path / "other" / "registry.keys").rename(place.key_file)
    with pytest.raises(StorageUnavailable, match="does not belong to this database"):
        await _is_open(place)
    for text in ("", "{}", '{"keys": []}', '{"keys": [{"id": "a", "key": "b"}]}'):
        place.key_file.write_text(text)
        with pytest.raises(StorageUnavailable):
            await _is_open(place)
    kept.rename(place.key_file)
    place.key_file.chmod(0o644)
    with pytest.raises(StorageUnavailable, match="others may read"):
        await _is_open(place)
    place.key_file.chmod(0o600)
    await _is_open(place)


async def test_a_lost_key_file_is_no_loss_where_nothing_was_sealed(place: Place) -> None:
    async with place.open() as base:
        await put(base.registry, server("other"))
    place.key_file.unlink()
    if not place.is_file:
        with pytest.raises(StorageUnavailable, match="delete 'key_check'"):
            await _filled(place)
        place.run("DELETE FROM meta WHERE name = 'key_check'")
    await _filled(place)
    await _is_open(place)


def test_a_stored_value_is_not_told_by_its_repr() -> None:
    values = (SECRET, replace(run(1), mcp_headers={"docs": {"X": CANARY}}), replace(session(1), plan={"x": CANARY}))
    assert CANARY not in repr(values)
