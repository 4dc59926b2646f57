"""Several processes at one database: turns, kill -9, news from elsewhere, a database that is busy or goes away."""

from __future__ import annotations

import asyncio
import random
import subprocess
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from outfitter.errors import StorageUnavailable
from tests.postgres import Postgres
from tests.storage.registry.places import Place, put, read_line, say, server

pytestmark = pytest.mark.anyio


@pytest.mark.promise("REGISTRY-SERIAL")
async def test_ten_writers_of_five_processes_take_turns_and_make_ten_versions(place: Place) -> None:
    writers = [place.start("write_together", name) for name in "abcde"]
    assert [read_line(writer) for writer in writers] == ["ready"] * 5
    for writer in writers:
        say(writer)
    versions = [version for writer in writers for version in read_line(writer)]
    assert [writer.wait(10) for writer in writers] == [0] * 5
    assert sorted(versions) == list(range(1, 11))
    async with place.open() as base:
        changes = await base.registry.changes()
        assert [(one.seq, one.revision, one.version) for one in changes] == [
            (each, each, each) for each in range(1, 11)
        ]
        assert len({one.after["name"] for one in changes if one.after}) == 10
        entry = await base.registry.entry("agents", "one")
        assert entry is not None
        assert entry.document["text"] == entry.document["name"] * 500
        assert entry.document == changes[-1].after
    _close(*writers)


@pytest.mark.promise("REGISTRY-DURABLE")
async def test_a_writer_that_is_killed_loses_nothing_that_was_acknowledged(place: Place) -> None:
    heard: dict[str, int] = {}
    for name in "abcd":
        writer = place.start("write_until_killed", name)
        for _ in range(random.randrange(1, 8)):
            heard[name] = read_line(writer)
        await asyncio.sleep(random.random() * 0.01)  # any moment of a write, also between two of them
        writer.kill()
        writer.wait(10)
        assert writer.stdout is not None
        heard[name] = max([heard[name], *(int(line) for line in writer.stdout.read().split("\n") if line)])
        _close(writer)
    async with place.open() as base:
        servers = [entry.id for entry in await base.registry.entries("mcp-servers")]
        agents = [entry.id for entry in await base.registry.entries("agents")]
        assert servers == agents, "both entries of a block or neither"
        for name, last in heard.items():
            numbers = [int(each[2:]) for each in servers if each.startswith(name)]
            assert numbers == list(range(len(numbers)))
            assert last + 1 <= len(numbers) <= last + 2, "what was acknowledged, and at most the one after it"
        assert len(await base.registry.changes(limit=10_000)) == 2 * len(servers)
        assert await base.registry.revision() == len(servers)
        await put(base.registry, server("z"))


@pytest.mark.promise("REGISTRY-NEWS")
async def test_a_change_of_another_process_is_heard(place: Place) -> None:
    async with place.open() as base, aclosing(base.registry.follow()) as revisions, asyncio.timeout(120):
        assert await anext(revisions) == 0
        writer = place.start("write_when_told", "x")
        assert await asyncio.to_thread(read_line, writer) == "ready"
        for number in range(1, 4):
            say(writer)
            assert await asyncio.to_thread(read_line, writer) == number
            assert await anext(revisions) == number
        writer.kill()
        writer.wait(10)
        _close(writer)


async def test_followers_end_with_the_database(place: Place) -> None:
    async with place.open() as base:
        stream = base.registry.follow()
        assert await anext(stream) == 0
        waiting = asyncio.create_task(anext(stream, None))
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert await waiting is None


@pytest.mark.promise("REGISTRY-NEWS")
async def test_news_go_on_after_the_server_was_away(own_postgres: Postgres, tmp_path: Path) -> None:
    place = Place(own_postgres.url(), tmp_path)
    async with place.open(wait=2) as base, aclosing(base.registry.follow()) as revisions, asyncio.timeout(120):
        assert await anext(revisions) == 0
        await asyncio.to_thread(own_postgres.stop)
        with pytest.raises(StorageUnavailable):
            await base.registry.entries()
        with pytest.raises(StorageUnavailable):
            await put(base.registry, server("x"))
        await asyncio.to_thread(own_postgres.start)
        async with place.open() as other:
            await put(other.registry, server("x"))
            assert await anext(revisions) == 1
            await put(other.registry, server("x"))
            assert await anext(revisions) == 2
        assert len(await base.registry.entries()) == 1


@pytest.mark.promise("REGISTRY-BUSY")
async def test_a_busy_database_is_waited_for_so_long_and_reads_are_served(place: Place) -> None:
    async with place.open(wait=0.5) as base:
        await put(base.registry, server("x"))
        many = [f"s{number}" for number in range(30)]
        with place.held():
            tries = [put(base.registry, server(name)) for name in many]
            pending = asyncio.gather(*tries, return_exceptions=True)
            assert len(await base.registry.entries()) == 1
            async with asyncio.timeout(60):
                answers = await pending
            assert [type(answer) for answer in answers] == [StorageUnavailable] * 30
            assert all("busy" in str(answer) for answer in answers)
            assert len(await base.registry.entries()) == 1
        await put(base.registry, server("y"))


async def test_a_writer_that_is_given_up_leaves_the_turn_to_the_next(place: Place) -> None:
    async with place.open(wait=10) as base:
        for moment in (0, 0.001, 0.003, 0.006, 0.01):
            with anyio.move_on_after(moment):
                await put(base.registry, server("x"))
            await put(base.registry, server("y"))
        entry = await base.registry.entry("mcp-servers", "y")
        assert entry is not None
        assert entry.version == 5


def _close(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
