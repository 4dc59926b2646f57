"""The server ``wink``: the tools of the outfit, offered to Claude Code in this process.

It asks for the list and makes the calls; both are answered by whoever made the server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from mcp import types
from mcp.server import Server

from outfitter.adapters.forms import arguments_form
from outfitter.tools import Tool

WINK = "wink"
_MOST_CHARACTERS = 2_000_000

ListTools: TypeAlias = Callable[[], tuple[Tool[Any, Any], ...]]
CallTool: TypeAlias = Callable[[str, dict[str, Any], str], Awaitable[tuple[str, bool]]]
"""Takes a name, arguments and the id of the call; gives what the model is told, and whether it worked."""


def wink_server(list_tools: ListTools, call_tool: CallTool) -> dict[str, Any]:
    """The server as the SDK takes it."""

    async def on_list_tools(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_written(tool) for tool in list_tools()])

    async def on_call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        meta: dict[str, Any] = dict(params.meta or {})
        told, worked = await call_tool(params.name, params.arguments or {}, str(meta.get("claudecode/toolUseId") or ""))
        content: list[Any] = [types.TextContent(type="text", text=told)]
        return types.CallToolResult(content=content, is_error=not worked)

    server: Server[Any] = Server(WINK, on_list_tools=on_list_tools, on_call_tool=on_call_tool)
    return {"type": "sdk", "name": WINK, "instance": server}


def _written(tool: Tool[Any, Any]) -> types.Tool:
    # Claude Code makes calls of one turn at the same time only when they say that they read; whether a call may be made
    # is decided here and not by that word. The limit keeps a long answer from becoming a file that nobody can read.
    return types.Tool.model_validate(
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": arguments_form(tool.input_schema),
            "annotations": {"readOnlyHint": True},
            "_meta": {"anthropic/maxResultSizeChars": _MOST_CHARACTERS},
        }
    )
