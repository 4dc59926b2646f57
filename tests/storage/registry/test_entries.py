"""Entries: versions, conflicts, history, what a rollback needs, who uses whom, pages and search."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from outfitter.errors import Invalid, NotFound, VersionConflict
from outfitter.storage import Delete, Entry, Put, Registry, User
from tests.storage.registry.places import Place, put, server

pytestmark = pytest.mark.anyio


async def test_a_document_comes_back_exactly_as_it_was_given(place: Place) -> None:
    document = {"z": 1, "a": [1.5, None, True, {"ü": "\u0000\ud800 ${X}"}], "name": "N\u0000\ud800", "description": "Ü"}
    async with place.open() as base:
        entry = await put(base.registry, Put("mcp-servers", "x", document))
    async with place.open() as base:
        found = await base.registry.entry("mcp-servers", "x")
        assert found == entry
        assert found is not None
        assert list(found.document) == ["z", "a", "name", "description"]
        assert found.document == document
        assert await base.registry.entry("agents", "x") is None
        assert await base.registry.revision() == 1


@pytest.mark.promise("REGISTRY-VERSIONS")
async def test_a_change_names_the_version_it_replaces_and_the_second_of_two_is_refused(place: Place) -> None:
    async with place.open() as base:
        first = await put(base.registry, Put("agents", "a", {"name": "a"}, expected=0))
        assert (first.version, first.etag) == (1, '"1"')
        second = await put(base.registry, Put("agents", "a", {"name": "a", "role": "x"}, expected=1), "bob")
        assert (second.version, second.updated_by, second.created_at) == (2, "bob", first.created_at)
        for expected in (0, 1, 3):
            with pytest.raises(VersionConflict) as caught:
                await put(base.registry, Put("agents", "a", {"name": "late"}, expected=expected))
            assert caught.value.current == 2
            with pytest.raises(VersionConflict):
                async with base.registry.changing("ann") as writing:
                    await writing.delete(Delete("agents", "a", expected=expected))
        with pytest.raises(VersionConflict) as caught:
            await put(base.registry, Put("agents", "b", {}, expected=1))
        assert caught.value.current == 0
        assert await base.registry.entries() == (second,)
        assert await base.registry.revision() == 2


@pytest.mark.promise("REGISTRY-VERSIONS")
async def test_a_version_is_never_used_twice_also_not_after_a_deletion(place: Place) -> None:
    async with place.open() as base:
        await put(base.registry, server("x"))
        async with base.registry.changing("ann") as writing:
            await writing.approve("mcp-servers", "x", "sha256:1")
            await writing.delete(Delete("mcp-servers", "x", expected=2))
        again = await put(base.registry, server("x"))
        assert (again.version, again.approved) == (4, None)
        with pytest.raises(NotFound):
            async with base.registry.changing("ann") as writing:
                await writing.delete(Delete("mcp-servers", "gone"))


async def _changed_half(registry: Registry) -> None:
    async with registry.changing("ann") as writing:
        await writing.put(server("y"))
        await writing.delete(Delete("mcp-servers", "x"))
        assert [entry.id for entry in await writing.entries()] == ["y"]
        raise RuntimeError


@pytest.mark.promise("REGISTRY-ATOMIC")
async def test_a_block_is_kept_whole_or_not_at_all(place: Place) -> None:
    async with place.open() as base:
        await put(base.registry, server("x"))
        with pytest.raises(RuntimeError):
            await _changed_half(base.registry)
        assert [entry.id for entry in await base.registry.entries()] == ["x"]
        assert len(await base.registry.changes()) == 1
        async with base.registry.changing("ann") as writing:
            await writing.put(server("y"))
            await writing.put(server("z"))
            assert writing.revision == 2
            assert await writing.entry("mcp-servers", "z") is not None
        async with base.registry.changing("nobody"):
            pass
        assert await base.registry.state() == (2, await base.registry.entries())
        assert [change.revision for change in await base.registry.changes()] == [1, 2, 2]


async def test_many_entries_are_put_at_once_as_if_one_by_one(place: Place) -> None:
    many = [server(f"s{number:04}") for number in range(1200)]
    async with place.open() as base:
        await put(base.registry, many[3])
        async with base.registry.changing("ann") as writing:
            await writing.delete(Delete("mcp-servers", "s0003"))
            await writing.put(many[5])
            assert await writing.put_all(()) == ()
            stored = await writing.put_all(many)
            with pytest.raises(Invalid, match="twice"):
                await writing.put_all([many[1], many[1]])
            with pytest.raises(VersionConflict):
                await writing.put_all([many[1], replace(many[2], expected=7)])
        assert stored == await base.registry.entries("mcp-servers")
        assert [entry.version for entry in stored[:7]] == [1, 1, 1, 3, 1, 2, 1]
        assert len(await base.registry.changes(limit=2000)) == 1203


@pytest.mark.promise("REGISTRY-HISTORY")
async def test_every_change_says_who_when_before_and_after(place: Place) -> None:
    async with place.open() as base:
        await put(base.registry, server("x", description="old"))
        await put(base.registry, server("x", description="new"), "bob")
        async with base.registry.changing("carol") as writing:
            await writing.approve("mcp-servers", "x", "sha256:1")
        async with base.registry.changing("dan") as writing:
            await writing.delete(Delete("mcp-servers", "x"))
        await put(base.registry, server("other"))
        found = await base.registry.changes("mcp-servers", "x")
        assert [(one.who, one.action, one.version) for one in found] == [
            ("ann", "create", 1), ("bob", "update", 2), ("carol", "approve", 3), ("dan", "delete", 4),
        ]  # fmt: skip
        assert found[0].before is None
        assert found[3].after is None
        for earlier, later in pairwise(found):
            assert earlier.after == later.before
        assert [one.at for one in found] == sorted(one.at for one in found)
        newest = await base.registry.changes(newest_first=True, limit=2)
        assert [one.seq for one in newest] == [5, 4]
        assert [one.seq for one in await base.registry.changes(newest_first=True, after=4, limit=2)] == [3, 2]
        assert [one.seq for one in await base.registry.changes(after=3)] == [4, 5]


@pytest.mark.promise("REGISTRY-HISTORY")
async def test_a_rollback_puts_an_earlier_document_back_with_its_secrets(place: Place) -> None:
    sealed = frozenset({"/default_headers/X-API-Key"})
    async with place.open() as base:
        secret = Put("mcp-servers", "x", {"default_headers": {"X-API-Key": "old key"}}, sealed)
        first = await put(base.registry, secret)
        await put(base.registry, Put("mcp-servers", "x", {"default_headers": {}}))
        past = await base.registry.past("mcp-servers", "x", 1)
        assert past is not None
        assert (past.document, past.sealed) == (first.document, sealed)
        back = Put("mcp-servers", "x", past.document, past.sealed, expected=2, restores=1)
        restored = await put(base.registry, back)
        assert (restored.version, restored.document) == (3, first.document)
        (change,) = await base.registry.changes(after=2)
        assert change.action == "rollback"
        # The sealed form of the history may be put again as it is, at its own place.
        assert change.after is not None
        assert (await put(base.registry, Put("mcp-servers", "x", change.after))).document == first.document
        assert await base.registry.past("mcp-servers", "x", 9) is None


async def test_who_uses_an_entry_is_known_and_kept_in_step(place: Place) -> None:
    uses: dict[str, Any] = {
        "mcpServers": {"a": {"ref": "x"}, "b": {"ref": "x"}, "c": {"url": "http://h"}, "d": {"headers": {}}}
    }
    async with place.open() as base:
        registry = base.registry
        await put(registry, server("x"))
        await put(registry, Put("capabilities", "c", uses))
        await put(registry, Put("agents", "a", uses | {"capabilities": ["c"]}))
        assert await registry.users_of("x") == (User("agents", "a"), User("capabilities", "c"))
        assert await registry.users_of("c", "capabilities") == (User("agents", "a"),)
        async with registry.changing("ann") as writing:
            await writing.put(Put("agents", "a", {"mcpServers": {"a": {"ref": "y"}}}))
            await writing.delete(Delete("capabilities", "c"))
            assert await writing.users_of("x") == ()
        assert await registry.users_of("x") == ()
        assert await registry.users_of("y") == (User("agents", "a"),)


async def test_lists_come_in_pages_and_can_be_searched(place: Place) -> None:
    async with place.open() as base:
        async with base.registry.changing("ann") as writing:
            for number in range(25):
                await writing.put(server(f"s{number:02}", description=f"Does 100%_{number} Things Ümlaut"))
            await writing.put(Put("agents", "s05", {"name": "s05"}))
        pages: list[Entry] = []
        while page := await base.registry.entries("mcp-servers", after=pages[-1].id if pages else None, limit=10):
            pages += page
        assert [entry.id for entry in pages] == [f"s{number:02}" for number in range(25)]
        assert [entry.kind for entry in await base.registry.entries(text="S05")] == ["agents", "mcp-servers"]
        assert [entry.id for entry in await base.registry.entries("mcp-servers", text="100%_7 ")] == ["s07"]
        assert len(await base.registry.entries("mcp-servers", text="ümlaut", limit=100)) == 25
        assert await base.registry.entries(text="\0\ud800") == ()
        assert await base.registry.entry("agents", "a\0\ud800") is None
        long = await put(base.registry, server("long", description="ü" * 100_000))
        assert await base.registry.entries(text="üüü") == (long,)
        assert await base.registry.entries(text="localhost") == (), "addresses and headers are not searched"
