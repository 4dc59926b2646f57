"""Putting a scripted server on a transport and connecting to it, as every link test does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from outfitter.catalog import Agent, Catalog, MCPServer, ServerEntry, ServerRef, TimeLimits
from outfitter.resolution import ArmedServer, Supply, arm, resolve
from outfitter.testing import Script, serve_http, stdio_server
from outfitter.upstream import Connection, Message, Patience, Peer, Pool

TRANSPORTS = ("stdio", "sse", "http")
ERAS = ("legacy", "modern")
QUICK = Patience(tries=2, first_wait=0.02, longest_wait=0.05, cooldown=30)


def armed(server: MCPServer, **headers: str) -> ArmedServer:
    """The server, armed by itself, with these headers (underscores stand for dashes)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    agent = Agent("tester", servers={server.name: ServerRef(server.name)})
    entry = ServerEntry(server, default_headers=named)
    return arm(resolve(agent, Catalog.of([entry])), Supply()).servers[server.name]


@asynccontextmanager
async def on_stage(script: Script, transport: str, limits: TimeLimits | None = None) -> AsyncGenerator[ArmedServer]:
    """A scripted server that can be reached by this transport."""
    chosen = limits or TimeLimits()
    if transport == "stdio":
        yield armed(replace(stdio_server(script), limits=chosen))
        return
    async with serve_http(script) as served:
        make = MCPServer.sse if transport == "sse" else MCPServer.http
        url = served.sse_url if transport == "sse" else served.url
        yield armed(make("scripted", url, limits=chosen))


@dataclass(slots=True)
class Answering:
    """A peer that answers every question the same way and remembers what it was asked."""

    asked: list[str]

    @property
    def capabilities(self) -> Message:
        """Everything that a client can be asked."""
        return {"elicitation": {}, "sampling": {}, "roots": {}}

    async def respond(self, method: str, params: Message) -> Message:
        """Say yes."""
        self.asked.append(f"{method}{len(params) and ''}")
        if method == "elicitation/create":
            return {"action": "accept", "content": {"answer": "yes"}}
        if method == "roots/list":
            return {"roots": []}
        return {"role": "assistant", "content": {"type": "text", "text": "ok"}, "model": "none"}


@asynccontextmanager
async def connected(
    script: Script, transport: str, *, limits: TimeLimits | None = None, peer: Peer | None = None,
    patience: Patience = QUICK,
) -> AsyncGenerator[Connection]:  # fmt: skip
    """A connection to a scripted server, closed at the end."""
    async with on_stage(script, transport, limits) as server, Pool(patience=patience) as pool:
        yield pool.connect(server, peer=peer)
