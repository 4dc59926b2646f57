"""A gateway on a free port, in front of scripted servers, and clients that talk to it as strangers would."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp

from outfitter.catalog import Agent, Catalog, InlineServer, MCPServer, ToolFilter
from outfitter.gateway import Address, Desk, Gate, HttpFront, Seat, TokenBook, open_desk, serving
from outfitter.resolution import Supply, arm_each, resolve
from outfitter.upstream import Connection, Message, Patience, Peer, Pool
from tests.upstream.stage import QUICK, armed

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def agent(name: str, *servers: MCPServer, **filters: ToolFilter) -> Agent:
    """An agent with these servers, each under its own name."""
    chosen = [replace(server, tools=filters.get(server.name, server.tools)) for server in servers]
    return Agent(name, servers={server.name: InlineServer(server) for server in chosen})


@dataclass(frozen=True, slots=True)
class Running:
    """A gateway that answers."""

    address: Address
    desk: Desk
    tokens: TokenBook | None

    def url(self, name: str, server: str | None = None) -> str:
        """The endpoint of an agent."""
        return self.address.url(name, server)


@asynccontextmanager
async def gateway(*agents: Agent, tokens: Path | None = None, patience: Patience = QUICK) -> AsyncGenerator[Running]:
    """A gateway for these agents; with a file of tokens it asks for one."""
    known = {one.name: one for one in agents}
    catalog = Catalog(agents=known)

    def make(name: str) -> Seat:
        plan = resolve(name, catalog)
        return Seat(plan, arm_each(plan, Supply()))

    book = None if tokens is None else TokenBook(tokens)
    async with (
        open_desk(make, book, lambda: Pool(patience=patience)) as desk,
        serving(HttpFront(desk, Gate(book)), Address(port=0)) as address,
    ):
        yield Running(address, desk, book)


@asynccontextmanager
async def client(url: str, *, peer: Peer | None = None, token: str | None = None) -> AsyncGenerator[Connection]:
    """A client of ours, speaking the newest era that the endpoint has."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with Pool(patience=QUICK) as pool:
        yield pool.connect(armed(MCPServer.http("gateway", url), **headers), peer=peer)


@dataclass(slots=True)
class Raw:
    """Plain HTTP to one endpoint: what is sent is what is written here."""

    url: str
    http: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict[str, str])
    ids: int = 0

    async def post(self, body: object, **headers: str) -> tuple[int, Any, Mapping[str, str]]:
        """Status, decoded body and headers of one POST."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.post(self.url, json=body, headers={**ACCEPT, **self.headers, **named}) as answer:
            text = await answer.text()
            decoded = await answer.json() if answer.content_type == "application/json" else text
            return answer.status, decoded, dict(answer.headers)

    async def modern(self, method: str, params: Message | None = None, **headers: str) -> tuple[int, Any]:
        """One well-formed request of the modern era, unless ``headers`` spoil it."""
        self.ids += 1
        given = params or {}
        meta: Message = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
        body: Message = {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": {"_meta": meta, **given}}
        routing = {"mcp_protocol_version": MODERN, "mcp_method": method}
        name = given.get("name", given.get("uri"))
        if isinstance(name, str) and method in {"tools/call", "prompts/get", "resources/read"}:
            routing["mcp_name"] = name
        status, decoded, _ = await self.post(body, **{**routing, **headers})
        return status, decoded

    async def handshake(self) -> str:
        """Begin a visit of the handshake era; its id goes with every later request."""
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        _, _, headers = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        visit = {name.lower(): value for name, value in headers.items()}["mcp-session-id"]
        self.headers = {**self.headers, "mcp-session-id": visit, "mcp-protocol-version": "2025-11-25"}
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return visit

    async def legacy(self, method: str, params: Message | None = None) -> tuple[int, Any]:
        """One request within the visit."""
        self.ids += 1
        body = {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params or {}}
        status, decoded, _ = await self.post(body)
        return status, decoded


@asynccontextmanager
async def raw(url: str, token: str | None = None) -> AsyncGenerator[Raw]:
    """Plain HTTP to an endpoint."""
    async with aiohttp.ClientSession() as http:
        yield Raw(url, http, {} if token is None else {"authorization": f"Bearer {token}"})
