"""Document 2's option C: calls to outside servers by server and tool name, governed like every other call.

A thin face on ``live``: servers are connected at their first call, and each call takes the one path of ``tools``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import anyio

from outfitter.basics import suggest
from outfitter.bridge.live import LiveServers
from outfitter.bridge.pool import McpConnectionPool
from outfitter.calls import ToolResult
from outfitter.catalog import MCPServer, ToolKey
from outfitter.errors import NotFound
from outfitter.policy import ToolPolicy
from outfitter.session import Session
from outfitter.tools import ResourceRegistry, Toolbox, ToolContext


@dataclass(frozen=True, slots=True)
class ProxiedMCPServer:
    """A program that is an MCP server, with the policies on its calls."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = field(default=None, repr=False)
    policies: tuple[ToolPolicy, ...] = ()
    dispatch_events: bool = True
    """Whether the session hears of its calls; without, what policies remember is the proxy's own, too."""

    def to_server(self) -> MCPServer:
        """The definition."""
        return MCPServer.stdio(self.name, self.command, self.args, env=self.env or {}, policies=self.policies)


class MCPProxy:
    """Calls tools of outside servers with policies, transactions and events. An asynchronous context manager."""

    def __init__(
        self, servers: Sequence[ProxiedMCPServer], session: Session, *, pool: McpConnectionPool | None = None
    ) -> None:
        """Nothing is connected before the first call. A pool that is given must be open, and stays open."""
        self._servers = {server.name: server for server in servers}
        self._session = session
        self._quiet = Session(session_id=session.session_id)
        self._pool = pool or McpConnectionPool()
        self._owns_pool = pool is None
        self._live = {server.name: LiveServers([server.to_server()], pool=self._pool) for server in servers}

    async def __aenter__(self) -> Self:
        """Ready to call."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Let every server go."""
        with anyio.CancelScope(shield=True):
            await self.aclose()

    async def aclose(self) -> None:
        """Let every server go."""
        for live in self._live.values():
            await live.adisconnect()
        if self._owns_pool:
            await self._pool.aclose()

    async def call_tool(
        self, server_name: str, tool_name: str, args: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The server's answer as it wrote it; ``{"error": …, "code": …}`` when there is none."""
        result = await self.execute(server_name, tool_name, args)
        return {"error": result.message, "code": result.code} if result.raw is None else dict(result.raw)

    async def execute(self, server_name: str, tool_name: str, args: Mapping[str, Any] | None = None) -> ToolResult[Any]:
        """The result of the call, typed."""
        if server_name not in self._servers:
            raise NotFound(f"the proxy has no server '{server_name}'", hint=suggest(server_name, self._servers))
        live = self._live[server_name]
        if self._owns_pool:
            await self._pool.aopen()
        await live.aconnect()
        found = live.tool_set.bridged.get(ToolKey(server_name, tool_name))
        shown = f"{server_name}_{tool_name}" if found is None else found.tool.name
        session = self._session if self._servers[server_name].dispatch_events else self._quiet
        context = ToolContext(session=session, resources=ResourceRegistry.of(self._pool))
        return await Toolbox.of(live.tool_set.tools, context).aexecute(shown, args)
