"""The catalog in memory: as the database has it, kept when the database is away, caught up when it is back."""

from __future__ import annotations

import random
from pathlib import Path

import anyio
import pytest

from outfitter.coordinator import Coordinator, LiveCatalog, open_coordinator
from outfitter.errors import InUse, OutfitterError, StorageUnavailable
from outfitter.storage import Delete, KeyRing, Put, open_database
from tests.coordinator.document4 import BLUEPRINT, EDITOR, agent, fill_document_4, server
from tests.postgres import Postgres

pytestmark = pytest.mark.anyio


@pytest.mark.promise("COORDINATOR-LAST-GOOD")
async def test_the_last_good_catalog_is_served_while_the_database_is_away(
    own_postgres: Postgres, keys: KeyRing
) -> None:
    async with (
        open_database(own_postgres.url(), keys, wait=1) as database,
        open_coordinator(database) as coordinator,
    ):
        await fill_document_4(coordinator)
        await anyio.to_thread.run_sync(own_postgres.stop)
        assert await coordinator.blueprints.of("project-researcher") == BLUEPRINT
        assert (await coordinator.entries.get("mcp-servers", "atlassian")).version == 1
        assert len((await coordinator.entries.list("mcp-servers")).items) == 2
        assert (await coordinator.blueprints.explain("project-researcher"))["agent"] == "project-researcher"
        with pytest.raises(StorageUnavailable):
            await coordinator.entries.create("mcp-servers", server("lost"), EDITOR)
        with pytest.raises(StorageUnavailable):
            await coordinator.runs.start({"agent_name": "project-researcher"}, EDITOR)
        await anyio.to_thread.run_sync(own_postgres.start)
        changed = anyio.Event()
        coordinator.live.on_change(lambda catalog, _: changed.set() if "back" in catalog.servers else None)
        async with open_database(own_postgres.url(), keys) as other, open_coordinator(other) as elsewhere:
            await elsewhere.entries.create("mcp-servers", server("back"), EDITOR)
        with anyio.fail_after(20):
            await changed.wait()
        assert set(coordinator.live.catalog.servers) == {"atlassian", "back", "context-store"}
        assert (await coordinator.runs.start({"agent_name": "project-researcher"}, EDITOR)).state == "pending"


@pytest.mark.promise("COORDINATOR-LAST-GOOD")
async def test_what_this_program_cannot_read_does_not_replace_what_it_can(local: Coordinator) -> None:
    await local.entries.create("mcp-servers", server("one"), EDITOR)
    registry = local.database.registry
    async with registry.changing("a newer program") as writing:
        await writing.put(Put("mcp-servers", "new", {"id": "new", "hologram": "x"}))
    with anyio.fail_after(10):
        while local.live.fault is None:
            await anyio.lowlevel.checkpoint()
    assert set(local.live.catalog.servers) == {"one"}
    assert (await local.entries.get("mcp-servers", "one")).version == 1
    with pytest.raises(StorageUnavailable, match="update this one"):
        await local.entries.create("mcp-servers", server("two"), EDITOR)
    async with registry.changing("a newer program") as writing:
        await writing.delete(Delete("mcp-servers", "new"))
    await local.entries.create("mcp-servers", server("two"), EDITOR)
    assert local.live.fault is None
    assert set(local.live.catalog.servers) == {"one", "two"}


async def test_step_by_step_memory_is_what_a_fresh_reading_is(local: Coordinator) -> None:
    chance = random.Random(42)
    for _ in range(60):
        name = f"n{chance.randrange(6)}"
        refs = {f"x{n}": {"ref": f"n{n}"} for n in range(6) if chance.random() < 0.3 and _has(local, f"n{n}")}
        document = chance.choice([("mcp-servers", server(name)), ("agents", agent(name, mcpServers=refs))])
        kind, body = document
        try:
            if chance.random() < 0.3:
                await local.entries.delete(kind, name, "*", EDITOR, force=chance.random() < 0.5)  # pyright: ignore[reportArgumentType]
            else:
                await local.entries.create(kind, body, EDITOR)  # pyright: ignore[reportArgumentType]
        except (OutfitterError, InUse):
            continue
    fresh = LiveCatalog(local.database.registry)
    await fresh.load()
    assert (local.live.catalog, local.live.revision) == (fresh.catalog, fresh.revision)
    assert local.live.entries == fresh.entries
    for name in (f"n{n}" for n in range(6)):
        assert local.live.users_of("mcp-servers", name) == fresh.users_of("mcp-servers", name)


def _has(coordinator: Coordinator, name: str) -> bool:
    return name in coordinator.live.catalog.servers


async def test_many_changes_at_once_are_caught_up(tmp_path: Path, keys: KeyRing) -> None:
    async with open_database(f"sqlite:///{tmp_path / 'r.db'}", keys) as database:
        live = LiveCatalog(database.registry)
        await live.load()
        async with database.registry.changing("seed") as writing:
            for number in range(250):
                await writing.put(Put("mcp-servers", f"s{number}", server(f"s{number}")))
        assert len((await live.newest()).entries) == 250


async def test_a_listener_that_left_hears_nothing_more(local: Coordinator) -> None:
    heard: list[int] = []
    leave = local.live.on_change(lambda _catalog, revision: heard.append(revision))
    await local.entries.create("mcp-servers", server("one"), EDITOR)
    leave()
    await local.entries.create("mcp-servers", server("two"), EDITOR)
    assert heard == [1]


async def test_an_error_of_the_block_leaves_it_as_it_was_raised(tmp_path: Path, keys: KeyRing) -> None:
    async with open_database(f"sqlite:///{tmp_path / 'r.db'}", keys) as database:
        with pytest.raises(KeyError, match="mine"):
            async with open_coordinator(database):
                raise KeyError("mine")
