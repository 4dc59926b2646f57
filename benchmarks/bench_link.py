"""What a call through a link costs this process, against the same call through the official SDK's client."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from benchmarks.measure import Ratio
from outfitter.catalog import Agent, Catalog, MCPServer, ServerEntry, ServerRef
from outfitter.resolution import ArmedServer, Supply, arm, resolve
from outfitter.testing import Script, SlowStart, stdio_server
from outfitter.upstream import Connection, Pool, connect_all

_CALLS, _ROUNDS, _LIMIT = 100, 7, 0.5
_SLOW_START, _TOGETHER = 4.0, 2.0
_ARGUMENTS = {"text": "hello " * 20, "number": 7}
Call = Callable[[], Awaitable[object]]


def armed(server: MCPServer) -> ArmedServer:
    """The server, armed by itself."""
    agent = Agent("bench", servers={server.name: ServerRef(server.name)})
    return arm(resolve(agent, Catalog.of([ServerEntry(server)])), Supply()).servers[server.name]


async def _cpu_of(call: Call) -> float:
    start = time.process_time()
    for _ in range(_CALLS):
        await call()
    return (time.process_time() - start) / _CALLS


async def _compare(server: MCPServer, client: Client) -> tuple[float, float]:
    async with Pool() as pool, client:
        connection = pool.connect(armed(server))
        await connection.use(lambda link: link.list_tools())
        await client.list_tools()
        calls: tuple[Call, Call] = (
            lambda: connection.use(lambda link: link.call_tool("echo", _ARGUMENTS)),
            lambda: client.call_tool("echo", _ARGUMENTS),
        )
        best = [float("inf"), float("inf")]
        for _ in range(_ROUNDS):
            for index, call in enumerate(calls):
                best[index] = min(best[index], await _cpu_of(call))
        return best[0], best[1]


def _on_stdio() -> tuple[float, float]:
    args = ["-m", "outfitter.testing.stdio_server", "--script", "{}"]
    client = Client(StdioServerParameters(command=sys.executable, args=args))
    return anyio.run(_compare, MCPServer.stdio("bench", sys.executable, args), client)


@contextlib.contextmanager
def _http_server() -> Generator[str]:
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        args = ["-m", "outfitter.testing.http_server", "--script", "{}", "--port-file", str(port_file)]
        with subprocess.Popen([sys.executable, *args]) as process:
            try:
                deadline = time.monotonic() + 20
                while not (port_file.exists() and port_file.read_text()) and time.monotonic() < deadline:
                    time.sleep(0.05)
                yield f"http://127.0.0.1:{port_file.read_text().strip()}/mcp"
            finally:
                process.terminate()


def _on_http() -> tuple[float, float]:
    with _http_server() as url:
        return anyio.run(_compare, MCPServer.http("bench", url), Client(streamable_http_client(url)))


async def _connect(count: int) -> float:
    """Seconds to connect so many servers that each take a while to start."""
    script = Script(faults=(SlowStart(_SLOW_START),))
    servers = {
        f"slow-{n}": armed(replace(stdio_server(script, name=f"slow-{n}"), shareable=False)) for n in range(count)
    }
    async with Pool() as pool:
        start = time.monotonic()
        found = await connect_all(pool, servers)
        seconds = time.monotonic() - start
    assert all(isinstance(connection, Connection) for connection in found.values())
    return seconds


def measure() -> Iterator[Ratio]:
    """One ratio for each transport, and ten slow servers against one."""
    ten, one = anyio.run(_connect, 10), anyio.run(_connect, 1)
    yield Ratio(f"connect ten servers that take {_SLOW_START:g} s to start", ten, one, "connect one of them", _TOGETHER)
    for what, job in (("stdio", _on_stdio), ("streamable HTTP", _on_http)):
        subject, yardstick = job()
        yield Ratio(f"a call through a link, {what}", subject, yardstick, "mcp.Client.call_tool", _LIMIT)
