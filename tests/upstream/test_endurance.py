"""What is left after many connections, and who gets which answer under load."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import resource
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Literal

import anyio
import pytest

from outfitter.catalog import MCPServer
from outfitter.resolution import ArmedServer
from outfitter.testing import Script, stdio_server
from outfitter.upstream import Connection, Link, Message, Pool
from tests.upstream.real import children_running, text_of
from tests.upstream.stage import QUICK, armed
from tests.upstream.stdio_kit import open_files, zombies

pytestmark = pytest.mark.anyio
CONCURRENCY = 64


@asynccontextmanager
async def scripted_process(script: Script) -> AsyncGenerator[int]:
    """A scripted server over HTTP in a process of its own, so that what is counted here is ours; its port."""
    command = [sys.executable, "-m", "outfitter.testing.http_server", "--script", script.to_json()]
    async with await anyio.open_process(command, stdin=DEVNULL, stdout=PIPE, stderr=None) as process:
        assert process.stdout is not None
        try:
            with anyio.fail_after(60):
                said = await process.stdout.receive()
            yield int(re.findall(rb"\d+", said)[0])
        finally:
            process.kill()


async def echo(link: Link) -> Message:
    return await link.call_tool("echo", {"text": "alive"})


async def one_life(server: ArmedServer) -> None:
    """Connect, call, disconnect."""
    async with Pool(patience=QUICK) as pool:
        assert "alive" in str(await pool.connect(server).use(echo))


async def live(servers: list[ArmedServer], lives: int, at_once: int) -> None:
    """So many connections come and go, the servers in turn."""
    left = iter(range(lives))

    async def worker() -> None:
        for number in left:
            await one_life(servers[number % len(servers)])

    async with anyio.create_task_group() as group:
        for _ in range(at_once):
            group.start_soon(worker)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What this process holds at a moment."""

    files: int
    children: list[int]
    tasks: int
    objects: int
    """Objects of upstream that are alive."""

    @classmethod
    def now(cls) -> Footprint:
        gc.collect()
        ours = sum(str(type(thing).__module__).startswith("outfitter.upstream") for thing in gc.get_objects())
        return cls(open_files(), children_running(), len(asyncio.all_tasks()), ours)


def memory_in_use() -> int:
    """The bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def check_nothing_is_left(run: Callable[[int], Awaitable[None]], warm_up: int, lives: int) -> None:
    """After a few lives to warm up, many more leave everything as it was."""
    await run(warm_up)
    before, memory = Footprint.now(), memory_in_use()
    await run(lives)
    assert zombies() == []
    assert Footprint.now() == before
    assert memory_in_use() - memory < 16 * 1024 * 1024


@pytest.mark.promise("F35")
async def test_a_thousand_connections_over_http_leave_nothing() -> None:
    async with scripted_process(Script(eras=("legacy",))) as old, scripted_process(Script(eras=("modern",))) as new:
        servers = [
            armed(MCPServer.http("old", f"http://127.0.0.1:{old}/mcp")),
            armed(MCPServer.http("new", f"http://127.0.0.1:{new}/mcp")),
            armed(MCPServer.sse("older", f"http://127.0.0.1:{old}/sse")),
        ]
        await check_nothing_is_left(lambda lives: live(servers, lives, 20), 100, 1_000)


@pytest.mark.promise("F35")
async def test_a_hundred_processes_leave_nothing() -> None:
    servers = [armed(stdio_server(Script(eras=(era,)))) for era in ("legacy", "modern")]
    await check_nothing_is_left(lambda lives: live(servers, lives, 5), 10, 100)


async def call_many(connection: Connection, calls: int = 10_000) -> None:
    """Many calls by 64 tasks; each gets its own answer."""
    numbers, answered = iter(range(calls)), set[int]()

    async def worker() -> None:
        for number in numbers:
            result = await connection.use(lambda link, text=f"<{number}>": link.call_tool("echo", {"text": text}))
            assert json.loads(text_of(result)) == {"text": f"<{number}>"}
            answered.add(number)

    async with anyio.create_task_group() as group:
        for _ in range(CONCURRENCY):
            group.start_soon(worker)
    assert len(answered) == calls


@pytest.mark.promise("LINK-UNCROSSED", "NO-CROSSED-REPLIES")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_ten_thousand_calls_on_one_process_are_not_crossed(era: Literal["legacy", "modern"]) -> None:
    async with Pool(patience=QUICK) as pool:
        await call_many(pool.connect(armed(stdio_server(Script(eras=(era,))))))


@pytest.mark.promise("LINK-UNCROSSED", "NO-CROSSED-REPLIES")
async def test_ten_thousand_calls_over_http_are_not_crossed() -> None:
    async with scripted_process(Script()) as port, Pool(patience=QUICK) as pool:
        await call_many(pool.connect(armed(MCPServer.http("scripted", f"http://127.0.0.1:{port}/mcp"))))


@pytest.mark.promise("LINK-UNCROSSED", "NO-CROSSED-REPLIES")
async def test_two_thousand_calls_on_one_stream_are_not_crossed() -> None:
    async with scripted_process(Script()) as port, Pool(patience=QUICK) as pool:
        await call_many(pool.connect(armed(MCPServer.sse("scripted", f"http://127.0.0.1:{port}/sse"))), calls=2_000)
