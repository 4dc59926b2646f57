"""Two gateways in front of one server, with the fast lane and without, and a server that answers as it is told."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
from aiohttp import web

from outfitter.catalog import Agent, Catalog
from outfitter.gateway import Address, CallRecord, Desk, Gate, Governing, HttpFront, Seat, Welcome, open_desk, serving
from outfitter.resolution import Supply, arm_each, resolve
from outfitter.upstream import Message, Pool
from tests.gateway.kit import MODERN, Raw, raw
from tests.upstream.stage import QUICK

_TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("say", "wait", "héllo wörld")]


@dataclass(slots=True)
class Parrot:
    """A server whose tool ``say`` answers what its arguments say: ``answer`` is the response without its id."""

    era: str = "modern"
    url: str = ""
    calls: Counter[str] = field(default_factory=Counter[str])
    arguments: deque[Any] = field(default_factory=lambda: deque[Any](maxlen=100))
    headers: deque[dict[str, str]] = field(default_factory=lambda: deque[dict[str, str]](maxlen=100))
    waiting: int = 0
    given_up: int = 0
    cancelled: list[object] = field(default_factory=list[object])

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Answer one message."""
        message: Message = json.loads(await request.read())
        method = str(message.get("method"))
        params: Message = message.get("params") or {}
        if method == "notifications/cancelled":
            self.cancelled.append(params.get("requestId"))
        if "id" not in message:
            return web.Response(status=202)
        reply: Message = {"jsonrpc": "2.0", "id": message["id"]}
        if method != "tools/call":
            return self._introduce(method, reply)
        self.calls[str(params["name"])] += 1
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        given: Any = params.get("arguments")
        self.arguments.append(given)
        if params["name"] == "wait":
            await self._wait()
        is_told = isinstance(given, dict) and "answer" in given
        wanted: Message = cast("Message", given) if is_told else {"answer": {"result": _echo(cast("object", given))}}
        return await self._say(request, wanted, {**reply, **wanted["answer"]})

    def _introduce(self, method: str, reply: Message) -> web.Response:
        if method == "tools/list":
            return web.json_response({**reply, "result": {"resultType": "complete", "tools": _TOOLS, "ttlMs": 0}})
        capabilities: Message = {"tools": {}}
        if method == "server/discover" and self.era == "modern":
            found = {"resultType": "complete", "supportedVersions": [MODERN], "capabilities": capabilities}
            return web.json_response({**reply, "result": found})
        if method == "initialize" and self.era == "legacy":
            info = {"name": "parrot", "version": "1"}
            found = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
            return web.json_response({**reply, "result": found}, headers={"mcp-session-id": "one"})
        error = {"code": -32601, "message": "Method not found"}
        return web.json_response({**reply, "error": error}, status=404 if self.era == "legacy" else 200)

    async def _wait(self) -> None:
        self.waiting += 1
        try:
            await anyio.sleep_forever()
        finally:
            self.waiting -= 1
            self.given_up += 1

    async def _say(self, request: web.Request, wanted: Message, reply: Message) -> web.StreamResponse:
        if wanted.get("drop") and request.transport is not None:
            request.transport.close()
        if not wanted.get("events"):
            return web.json_response(reply, status=wanted.get("status", 200), headers=wanted.get("headers"))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for said in (*wanted.get("before", ()), reply):
            await response.write(b"event: message\r\ndata: " + json.dumps(said).encode() + b"\r\n\r\n")
        return response


def _echo(given: object) -> Message:
    return {"content": [{"type": "text", "text": json.dumps(given)}], "structuredContent": {"given": given}}


@asynccontextmanager
async def parrot(era: str = "modern") -> AsyncGenerator[Parrot]:
    """A parrot on a free port."""
    bird = Parrot(era)
    app = web.Application(client_max_size=32 * 1024 * 1024)
    app.router.add_post("/mcp", bird.post)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        bird.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        yield bird
    finally:
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class Lane:
    """One gateway: its endpoint, and the records of its calls."""

    address: Address
    desk: Desk
    records: deque[CallRecord]

    def taken(self) -> Counter[str]:
        """How many calls were answered in which lane."""
        return Counter(record.lane for record in self.records)


@asynccontextmanager
async def lane(
    *agents: Agent, is_fast: bool, patience: float = 0.2, governing: Governing | None = None
) -> AsyncGenerator[Lane]:
    """A gateway for these agents, with or without the fast lane, which keeps a call for so many seconds."""
    catalog = Catalog(agents={one.name: one for one in agents})

    def make(name: str) -> Seat:
        plan = resolve(name, catalog)
        return Seat(plan, arm_each(plan, Supply()))

    async with (
        open_desk(make, None, lambda: Pool(patience=QUICK), governing=governing or Governing()) as desk,
        serving(
            HttpFront(desk, Gate(None)), Address(port=0), is_fast=is_fast, welcome=Welcome(fast_seconds=patience)
        ) as address,
    ):
        with desk.recorder.listening() as records:
            yield Lane(address, desk, records)


@dataclass(slots=True)
class Pair:
    """The same client at both gateways."""

    fast: Lane
    full: Lane
    clients: tuple[Raw, Raw]
    era: str

    async def call(self, name: str, arguments: object = None, **body: object) -> tuple[Any, Any]:
        """Status and body of both answers to one call, the fast one first."""
        first, second = [await self._ask(client, name, arguments, body) for client in self.clients]
        return first, second

    async def _ask(self, client: Raw, name: str, arguments: object, body: Message) -> tuple[int, Any]:
        params: Message = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        message: Message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **body}
        headers: dict[str, str] = {}
        if self.era == "modern":
            meta = {f"io.modelcontextprotocol/{key}": value for key, value in _META.items()}
            params["_meta"] = {**meta, **params.get("_meta", {})}
            from outfitter.upstream import header_text

            headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": header_text(name)}
        status, said, _ = await client.post(message, **headers)
        return status, said


_META: Message = {"protocolVersion": MODERN, "clientCapabilities": {}}


@asynccontextmanager
async def pair(
    *agents: Agent, era: str, server: str | None = None, patience: float = 0.2,
    governing: Callable[[], Governing] = Governing,
) -> AsyncGenerator[Pair]:  # fmt: skip
    """Both gateways, warm: their lists are known."""
    async with AsyncExitStack() as stack:
        fast = await stack.enter_async_context(lane(*agents, is_fast=True, patience=patience, governing=governing()))
        full = await stack.enter_async_context(lane(*agents, is_fast=False, governing=governing()))
        clients: list[Raw] = []
        for one in (fast, full):
            client = await stack.enter_async_context(raw(one.address.url(agents[0].name, server)))
            clients.append(client)
            if era == "legacy":
                await client.handshake()
                await client.legacy("tools/list")
            else:
                await client.modern("tools/list")
        yield Pair(fast, full, (clients[0], clients[1]), era)
