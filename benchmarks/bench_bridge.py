"""What a bridged call costs, against the bare client of the official SDK: the same in-memory server for both."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.server import Server, ServerRequestContext

from benchmarks.measure import Ratio
from benchmarks.memory_wire import to_server
from outfitter import McpIntegrationSection, MCPServer, Session
from outfitter.bridge import McpConnectionPool
from outfitter.tools import ToolContext, aexecute
from outfitter.upstream import Pool

_CALLS, _ROUNDS, _LIMIT = 200, 9, 1.5
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "number": {"type": "integer"}, "tags": {"type": "array"}},
    "required": ["text"],
}
_ARGUMENTS: dict[str, Any] = {"text": "hello " * 20, "number": 7, "tags": ["a", "b"]}


async def _list(_ctx: ServerRequestContext[Any, Any], _params: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema=_SCHEMA)])


async def _call(_ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(params.arguments))])


def _server() -> Server[Any]:
    return Server("bench", on_list_tools=_list, on_call_tool=_call)


async def _cpu_of(call: Callable[[], Awaitable[object]]) -> float:
    start = time.process_time()
    for _ in range(_CALLS):
        await call()
    return (time.process_time() - start) / _CALLS


async def _compare() -> tuple[float, float]:
    pool = McpConnectionPool(make_pool=lambda: Pool(open_wire=to_server(_server())))
    session = Session()
    definition = MCPServer.http("bench", "http://in-memory/")
    async with (
        pool,
        McpIntegrationSection(servers=[definition], session=session, pool=pool) as section,
        Client(_server(), mode="legacy") as client,
    ):
        tool, context = section.tools()[0], ToolContext(session=session)
        assert (await aexecute(tool, _ARGUMENTS, context=context)).success
        calls: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: aexecute(tool, _ARGUMENTS, context=context),
            lambda: client.call_tool("echo", _ARGUMENTS),
        )
        best = [float("inf"), float("inf")]
        for _ in range(_ROUNDS):
            for index, call in enumerate(calls):
                best[index] = min(best[index], await _cpu_of(call))
        return best[0], best[1]


def measure() -> Iterator[Ratio]:
    """One ratio: everything a bridged call does, and the bare call."""
    subject, yardstick = anyio.run(_compare)
    yield Ratio("a bridged call over an in-memory server", subject, yardstick, "mcp.Client.call_tool", _LIMIT)
