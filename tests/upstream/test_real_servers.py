"""The link kit against real servers from PyPI and npm, as processes: each connects, lists, and does real work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from outfitter.catalog import MCPServer
from outfitter.errors import OutfitterError, UpstreamError, UpstreamLost
from outfitter.upstream import Connection, Era, Link, Pool, State
from tests.upstream.real import (
    call,
    call_for_text,
    children_running,
    npm_server,
    python_server,
    sqlite_server,
    text_of,
)
from tests.upstream.stage import QUICK, armed

pytestmark = pytest.mark.anyio
LEGACY, MODERN = (Era.LEGACY, "2025-11-25"), (Era.MODERN, "2026-07-28")
Starting = Callable[[Path], MCPServer]

SERVERS: dict[str, tuple[Starting, tuple[Era, str], int]] = {
    "everything": (lambda _: npm_server("everything"), LEGACY, 13),
    "filesystem": (lambda folder: npm_server("filesystem", str(folder)), LEGACY, 14),
    "memory": (lambda folder: memory(folder / "memory.jsonl"), LEGACY, 9),
    "sequential-thinking": (lambda _: npm_server("sequential-thinking"), LEGACY, 1),
    "git": (lambda _: python_server("git"), MODERN, 12),
    "time": (lambda _: python_server("time", "--local-timezone", "UTC"), MODERN, 2),
    "fetch": (lambda _: python_server("fetch"), MODERN, 1),
    "sqlite": (lambda folder: sqlite_server(folder / "a.db"), LEGACY, 6),
}


def memory(file: Path) -> MCPServer:
    return npm_server("memory", env={"MEMORY_FILE_PATH": str(file)})


@asynccontextmanager
async def using(server: MCPServer) -> AsyncGenerator[Connection]:
    async with Pool(patience=QUICK) as pool:
        yield pool.connect(armed(server))


@pytest.mark.promise("REAL-SERVERS")
@pytest.mark.parametrize("name", SERVERS)
async def test_a_real_server_connects_in_its_era_and_lists_its_tools(name: str, tmp_path: Path) -> None:
    start, agreed, tools = SERVERS[name]
    async with using(start(tmp_path)) as connection:
        listed = await connection.use(lambda link: link.list_tools())
        assert len({tool["name"] for tool in listed}) == tools
        assert connection.agreement is not None
        assert (connection.agreement.era, connection.agreement.version) == agreed
        assert connection.health.state is State.READY


@pytest.mark.promise("REAL-SERVERS")
async def test_all_real_servers_work_side_by_side_and_are_gone_with_the_pool(tmp_path: Path) -> None:
    before, counts = children_running(), dict[str, int]()
    async with Pool(patience=QUICK) as pool:

        async def count(name: str, connection: Connection) -> None:
            counts[name] = len(await connection.use(lambda link: link.list_tools()))

        async with anyio.create_task_group() as group:
            for name, (start, _, _) in SERVERS.items():
                group.start_soon(count, name, pool.connect(armed(start(tmp_path))))
        assert len(children_running()) == len(before) + len(SERVERS)
    assert children_running() == before
    assert counts == {name: tools for name, (_, _, tools) in SERVERS.items()}


# ── git ──


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit and one change that is not staged."""
    folder = tmp_path / "repository"
    name = ("-c", "user.name=Tester", "-c", "user.email=tester@example.invalid", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "init", "--quiet", "--initial-branch=trunk", str(folder)], check=True)
    file = folder / "poem.txt"
    file.write_text("one\n")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    subprocess.run(["git", *name, "commit", "--quiet", "-m", "The first line"], cwd=folder, check=True)
    file.write_text("one\ntwo\n")
    return folder


@pytest.mark.promise("REAL-GIT")
async def test_git_shows_the_state_the_log_and_the_change_of_a_repository(repository: Path) -> None:
    path = str(repository)
    async with using(python_server("git", "--repository", path)) as connection:
        assert "modified:   poem.txt" in await call_for_text(connection, "git_status", repo_path=path)
        log = await call_for_text(connection, "git_log", repo_path=path, max_count=5)
        assert "The first line" in log
        assert "Tester" in log
        assert "+two" in await call_for_text(connection, "git_diff_unstaged", repo_path=path)
        await call(connection, "git_create_branch", repo_path=path, branch_name="side")
        assert "side" in await call_for_text(connection, "git_branch", repo_path=path, branch_type="local")


@pytest.mark.promise("REAL-GIT")
async def test_git_refuses_a_repository_it_was_not_given_and_goes_on(repository: Path, tmp_path: Path) -> None:
    async with using(python_server("git", "--repository", str(repository))) as connection:
        try:
            said = str(await call(connection, "git_status", repo_path=str(tmp_path)))
        except UpstreamError as error:
            said = error.message
        assert "outside" in said
        assert "poem.txt" in await call_for_text(connection, "git_status", repo_path=str(repository))


# ── filesystem ──


@pytest.mark.promise("REAL-FILESYSTEM")
async def test_filesystem_writes_reads_and_lists_in_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    async with using(npm_server("filesystem", str(tmp_path))) as connection:
        await call_for_text(connection, "write_file", path=str(file), content="grüße\n")
        assert file.read_text(encoding="utf-8") == "grüße\n"
        assert "grüße" in await call_for_text(connection, "read_text_file", path=str(file))
        assert "[FILE] note.txt" in await call_for_text(connection, "list_directory", path=str(tmp_path))


@pytest.mark.promise("REAL-FILESYSTEM")
async def test_filesystem_refuses_a_path_outside_and_goes_on(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside.txt"
    inside.mkdir()
    async with using(npm_server("filesystem", str(inside))) as connection:
        refused = await call(connection, "write_file", path=str(outside), content="x")
        assert refused["isError"] is True
        assert "outside allowed directories" in text_of(refused)
        assert not outside.exists()
        assert str(inside) in await call_for_text(connection, "list_allowed_directories")


@pytest.mark.promise("REAL-FILESYSTEM")
async def test_filesystem_brings_a_large_file_whole(tmp_path: Path) -> None:
    content = "0123456789abcdef" * 65536
    (tmp_path / "large.txt").write_text(content)
    async with using(npm_server("filesystem", str(tmp_path))) as connection:
        assert await call_for_text(connection, "read_text_file", path=str(tmp_path / "large.txt")) == content


# ── memory, sequential-thinking ──


@pytest.mark.promise("REAL-MEMORY")
async def test_memory_keeps_what_it_was_told_across_two_lives(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    entity = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    async with using(memory(file)) as connection:
        await call_for_text(connection, "create_entities", entities=[entity])
    async with using(memory(file)) as connection:
        graph = json.loads(await call_for_text(connection, "read_graph"))
        assert graph["entities"] == [entity]
        assert "Ada" in await call_for_text(connection, "search_nodes", query="program")
        (resource,) = await connection.use(lambda link: link.list_all("resources/list", "resources"))
        read = await connection.use(lambda link: link.request("resources/read", {"uri": resource["uri"]}))
        assert "Ada" in str(read)


@pytest.mark.promise("REAL-THINKING")
async def test_sequential_thinking_counts_the_thoughts() -> None:
    async with using(npm_server("sequential-thinking")) as connection:
        for number in (1, 2):
            said = await call_for_text(
                connection, "sequentialthinking", thought="so", thoughtNumber=number, totalThoughts=2,
                nextThoughtNeeded=number == 1,
            )  # fmt: skip
        assert json.loads(said)["thoughtHistoryLength"] == 2


# ── time, sqlite, fetch ──


@pytest.mark.promise("REAL-TIME")
async def test_time_converts_between_zones() -> None:
    async with using(python_server("time", "--local-timezone", "UTC")) as connection:
        asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        converted = json.loads(await call_for_text(connection, "convert_time", **asked))
        assert converted["target"]["datetime"].endswith("T21:00:00+09:00")
        assert converted["time_difference"] == "+9.0h"


@pytest.mark.promise("REAL-SQLITE")
async def test_sqlite_creates_fills_and_reads_a_table(tmp_path: Path) -> None:
    async with using(sqlite_server(tmp_path / "shop.db")) as connection:
        await call_for_text(connection, "create_table", query="CREATE TABLE fruit (name TEXT, price REAL)")
        await call_for_text(connection, "write_query", query="INSERT INTO fruit VALUES ('fig', 0.5), ('kiwi', 0.75)")
        rows = await call_for_text(connection, "read_query", query="SELECT name FROM fruit WHERE price > 0.6")
        assert "kiwi" in rows
        assert "fig" not in rows
        assert "fruit" in await call_for_text(connection, "list_tables")
        await call_for_text(connection, "append_insight", insight="kiwis are dear")
        memo = await connection.use(lambda link: link.request("resources/read", {"uri": "memo://insights"}))
        assert "kiwis are dear" in str(memo)


@pytest.mark.promise("REAL-SQLITE")
async def test_a_method_that_a_server_declares_and_lacks_is_told_and_hurts_nothing(tmp_path: Path) -> None:
    async with using(sqlite_server(tmp_path / "a.db")) as connection:
        with pytest.raises(UpstreamError) as raised:
            await connection.use(lambda link: link.list_all("resources/templates/list", "resourceTemplates"))
        assert raised.value.rpc_code == -32601
        assert await call_for_text(connection, "list_tables") == "[]"


@pytest.mark.promise("REAL-FETCH")
async def test_fetch_has_a_prompt_and_says_why_it_refuses_loopback() -> None:
    async with using(python_server("fetch", "--ignore-robots-txt")) as connection:
        (prompt,) = await connection.use(lambda link: link.list_all("prompts/list", "prompts"))
        assert prompt["name"] == "fetch"
        refused = await call(connection, "fetch", url="http://127.0.0.1:1/")
        assert refused["isError"] is True
        assert "Refused to fetch" in text_of(refused)
        assert len(await connection.use(lambda link: link.list_tools())) == 1


# ── killed ──


@pytest.mark.promise("REAL-RESTART")
async def test_a_real_server_that_is_killed_in_a_call_is_started_again_for_the_next() -> None:
    server = npm_server("everything", "stdio", "killed-in-a-call")

    def kill(_: object) -> None:
        for pid in children_running("killed-in-a-call"):
            os.kill(pid, signal.SIGKILL)

    async with using(server) as connection:
        arguments = {"duration": 60, "steps": 600}
        with pytest.raises(UpstreamLost, match="SIGKILL") as raised:
            await connection.use(
                lambda link: link.call_tool("trigger-long-running-operation", arguments, on_progress=kill)
            )
        assert raised.value.may_have_run
        assert await call_for_text(connection, "echo", message="again") == "Echo: again"
        assert len(children_running("killed-in-a-call")) == 1
    assert children_running("killed-in-a-call") == []


@pytest.mark.promise("REAL-RESTART")
async def test_a_real_server_that_is_killed_between_two_calls_costs_no_call(repository: Path) -> None:
    path = str(repository)
    async with using(python_server("git", "--repository", path)) as connection:
        await call_for_text(connection, "git_status", repo_path=path)
        (pid,) = children_running(path)

        async def kill(link: Link) -> OutfitterError:
            os.kill(pid, signal.SIGKILL)
            return await link.wait_lost()

        assert "SIGKILL" in (await connection.use(kill)).message
        assert "poem.txt" in await call_for_text(connection, "git_status", repo_path=path)
        assert children_running(path) != [pid]
