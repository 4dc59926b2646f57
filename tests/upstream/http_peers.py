"""HTTP servers for the tests of the remote wires: small, scripted, on loopback, and as rude as a test wants."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from subprocess import PIPE, Popen
from typing import Any, Literal

from outfitter.catalog import Agent, Catalog, MCPServer, ServerEntry, ServerRef
from outfitter.resolution import ArmedServer, Supply, arm, resolve
from outfitter.upstream import Message

CANARY = "CNRY-7f3a91c2"


def armed(
    url: str, headers: Mapping[str, str] | None = None, kind: Literal["streamable-http", "sse"] = "streamable-http"
) -> ArmedServer:
    """A server at this URL, ready to be connected."""
    make = MCPServer.sse if kind == "sse" else MCPServer.http
    agent = Agent("a", servers={"s": ServerRef("s")})
    entry = ServerEntry(make("s", url), default_headers=dict(headers or {}))
    catalog = Catalog.of([entry], [], [agent])
    return arm(resolve(agent, catalog), Supply()).servers["s"]


@dataclass
class Notebook:
    """An inbox that writes down what came, and answers every question with its own text."""

    notices: list[Message] = field(default_factory=list[Message])
    questions: list[Message] = field(default_factory=list[Message])
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def notice(self, message: Message, during: object = None) -> None:  # noqa: ARG002 - the wire says it
        self.notices.append(message)
        self.arrived.set()

    async def answer(self, message: Message, during: object = None) -> Message:  # noqa: ARG002 - the wire says it
        self.questions.append(message)
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"said": message["method"]}}


def a_request(id_: int = 1, method: str = "tools/call", **params: object) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def a_note(method: str = "notifications/progress", **params: object) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def an_answer(id_: object, **result: object) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def an_error(id_: object, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def an_event(message: Message | None = None, *, id_: str = "", retry: int | None = None, type_: str = "") -> bytes:
    lines = [f"id: {id_}"] if id_ else []
    lines += [f"event: {type_}"] if type_ else []
    lines += [] if retry is None else [f"retry: {retry}"]
    return "\n".join([*lines, f"data: {'' if message is None else json.dumps(message)}", "", ""]).encode()


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> Message:
        return json.loads(self.body)


@dataclass
class Reply:
    """The way back to the client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Because", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        await self.send("\r\n".join(lines).encode())

    async def whole(self, body: bytes = b"", status: int = 200, kind: str = "application/json", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.head(status, {"Content-Type": kind, "Content-Length": str(len(body)), **named})
        await self.send(body)

    async def json(self, value: object, status: int = 200, **headers: str) -> None:
        await self.whole(json.dumps(value).encode(), status, **headers)

    async def open_stream(self, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **named})

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def stream(self, *events: bytes) -> None:
        await self.open_stream()
        for event in events:
            await self.chunk(event)
        await self.end()

    async def end(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def wait_gone(self) -> None:
        """Until the client has closed the connection."""
        await self.reader.read()

    def reset(self) -> None:
        """Drop the connection without a goodbye."""
        self.writer.transport.abort()


Handler = Callable[[Request, Reply], Awaitable[None]]


@dataclass
class Peer:
    """A running server: where it is, and what it has seen."""

    port: int
    connections: int = 0
    requests: list[Request] = field(default_factory=list[Request])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


@asynccontextmanager
async def serve(handler: Handler) -> AsyncGenerator[Peer]:
    """A server that hands every request to the handler."""
    tasks: set[asyncio.Task[Any]] = set()
    peer = Peer(0)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        peer.connections += 1
        try:
            while not writer.is_closing():
                request = await _read_request(reader)
                peer.requests.append(request)
                await handler(request, Reply(reader, writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def echo(request: Request, reply: Reply) -> None:
    """The healthy server: answers every request with its parameters, and takes everything else."""
    if request.method == "POST" and "id" in request.message:
        await reply.json(an_answer(request.message["id"], **request.message["params"]))
    else:
        await reply.whole(status=202)


def in_order(*handlers: Handler) -> Handler:
    """One handler per request, and the healthy one ever after."""
    waiting = list(handlers)

    async def handle(request: Request, reply: Reply) -> None:
        await (waiting.pop(0) if waiting else echo)(request, reply)

    return handle


_SDK_SERVER = """
import socket, sys
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

mcp = MCPServer("peer")

@mcp.tool()
def say(text: str) -> str:
    return text

@mcp.tool()
async def count(n: int, ctx: Context) -> str:
    for step in range(n):
        await ctx.report_progress(step + 1, n)
    return str(n)

sock = socket.socket()
sock.bind(("127.0.0.1", 0))
sock.listen(64)
print(sock.getsockname()[1], flush=True)
app = mcp.sse_app() if sys.argv[1] == "sse" else mcp.streamable_http_app()
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[sock])
"""


@contextmanager
def sdk_server(kind: str) -> Generator[int]:
    """The official SDK's server in a process of its own; its port. It listens before it says so."""
    with Popen([sys.executable, "-c", _SDK_SERVER, kind], stdout=PIPE) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def texts(events: Iterable[Message]) -> list[str]:
    """The methods of these messages, in order."""
    return [str(event["method"]) for event in events]
