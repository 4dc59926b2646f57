"""Clients of the scripted servers: the official SDK's, and raw ones that hide nothing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from outfitter.testing import Script, serve_http, stdio_server

LEGACY, MODERN = "2025-11-25", "2026-07-28"
TRANSPORTS = ("stdio", "sse", "http")
ERAS = ("legacy", "modern")
BOUND = 30

META: Mapping[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def reach(
    script: Script, transport: str
) -> AsyncGenerator[AbstractAsyncContextManager[Any] | StdioServerParameters]:
    """A running server as the SDK's client wants to be told of it."""
    if transport == "stdio":
        server = stdio_server(script)
        yield StdioServerParameters(command=server.command or "", args=list(server.args))
        return
    async with serve_http(script) as serving:
        yield sse_client(serving.sse_url) if transport == "sse" else streamable_http_client(serving.url)


@asynccontextmanager
async def opened(script: Script, transport: str, **options: Any) -> AsyncGenerator[Client]:  # noqa: ANN401
    """The SDK's client, connected. Every wait inside has a bound."""
    async with AsyncExitStack() as stack:
        target = await stack.enter_async_context(reach(script, transport))
        stack.enter_context(anyio.fail_after(BOUND))
        yield await stack.enter_async_context(Client(target, cache=None, **options))


def request(method: str, *, id_: int = 1, modern: bool = False, **params: Any) -> dict[str, Any]:  # noqa: ANN401
    """A request message of either era."""
    meta = {"_meta": dict(META)} if modern else {}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**params, **meta}}


def call(tool: str, *, id_: int = 1, modern: bool = False, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """A tool call of either era."""
    return request("tools/call", id_=id_, modern=modern, name=tool, arguments=arguments)


def handshake() -> dict[str, Any]:
    """The first request of the handshake era."""
    return request("initialize", id_=0, protocolVersion=LEGACY, capabilities={}, clientInfo={"name": "raw"})


@dataclass(frozen=True, slots=True)
class Pipe:
    """A scripted process, line by line."""

    process: Process
    lines: BufferedByteReceiveStream

    async def send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(json.dumps(message).encode() + b"\n")

    async def line(self) -> bytes:
        return await self.lines.receive_until(b"\n", 1 << 26)

    async def receive(self) -> dict[str, Any]:
        return json.loads(await self.line())

    async def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        await self.send(message)
        return await self.receive()

    async def stderr(self) -> bytes:
        assert self.process.stderr is not None
        return b"".join([chunk async for chunk in self.process.stderr])


@asynccontextmanager
async def piped(script: Script) -> AsyncGenerator[Pipe]:
    """The scripted server as a process, with its pipes in hand. It is gone at the end."""
    server = stdio_server(script)
    command = [server.command or "", *server.args]
    with anyio.fail_after(BOUND):
        async with await anyio.open_process(command, env={"PATH": os.environ["PATH"]}) as process:
            assert process.stdout is not None
            try:
                yield Pipe(process, BufferedByteReceiveStream(process.stdout))
            finally:
                if process.returncode is None:
                    process.kill()


def http_headers(message: Mapping[str, Any], session: str | None = None) -> dict[str, str]:
    """The headers a well-behaved client sends with a message."""
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    if "_meta" in message.get("params", {}):
        headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
        if "name" in message["params"]:
            headers["Mcp-Name"] = message["params"]["name"]
    if session is not None:
        headers["Mcp-Session-Id"] = session
    return headers


async def raw_post(url: str, message: Mapping[str, Any], received: list[bytes]) -> None:
    """Put everything the server sends back on one connection into a list; resets are not hidden."""
    place, body = urlsplit(url), json.dumps(message).encode()
    headers = {**http_headers(message), "Host": place.netloc, "Connection": "close", "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(f"POST {place.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        while chunk := await reader.read(1 << 16):
            received.append(chunk)
    finally:
        writer.transport.abort()
