"""The same five tools on two stages: in our own process, and at a real MCP server in a process of its own.

    echo   says its arguments again; its schema marks ``pin`` as a secret
    add    needs two numbers, a not below zero
    fail   says that it failed, after a report of progress
    broken ends badly: a native one raises, a server answers with an error of the protocol
    slow   reports progress, then gives no answer in time

Whoever calls them must not be able to tell where they live, other than by asking ``source``.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, NoReturn

import anyio
import msgspec

from outfitter.bridge import McpIntegrationSection
from outfitter.calls import CallSource, ToolResult
from outfitter.catalog import TimeLimits
from outfitter.session import Session
from outfitter.testing import Script, ScriptedTool, stdio_server
from outfitter.tools import Tool, ToolContext

SERVER = "kit"
SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the tools are, and the tools by what they do."""

    source: CallSource
    server: str | None
    adapter: str
    tools: Mapping[str, Tool[Any, Any]]

    def __getitem__(self, behaviour: str) -> Tool[Any, Any]:
        return self.tools[behaviour]


@dataclass(frozen=True, slots=True)
class EchoParams:
    text: str = ""
    api_key: str = ""
    pin: Annotated[str, msgspec.Meta(extra_json_schema={"writeOnly": True})] = ""


@dataclass(frozen=True, slots=True)
class AddParams:
    a: Annotated[int, msgspec.Meta(ge=0)]
    b: int


@dataclass(frozen=True, slots=True)
class FailParams:
    message: str = "it failed"


@dataclass(frozen=True, slots=True)
class SlowParams:
    seconds: float = 60.0


def _echo(params: EchoParams) -> ToolResult[dict[str, str]]:
    return ToolResult(f'{{"text": "{params.text}"}}', {"text": params.text})


def _add(params: AddParams) -> ToolResult[int]:
    return ToolResult(f'{{"sum": {params.a + params.b}}}', params.a + params.b)


def _fail(params: FailParams, *, context: ToolContext) -> ToolResult[Any]:
    context.report(1, 1, "")
    return ToolResult.error(params.message)


def _broken(params: FailParams) -> NoReturn:
    raise RuntimeError(params.message)


@contextmanager
def native_stage() -> Generator[Stage]:
    """The tools in our own process; a thread that waits for nothing is let go at the end."""
    leave = threading.Event()

    def slow(params: SlowParams, *, context: ToolContext) -> str:
        context.report(0, 1, "")
        leave.wait(params.seconds)
        return "slept"

    async def slow_async(params: SlowParams, *, context: ToolContext) -> str:
        context.report(0, 1, "")
        await anyio.sleep(params.seconds)
        return "slept"

    tools = [
        Tool[EchoParams, dict[str, str]](f"{SERVER}_echo", "Says its arguments", _echo, tool="echo"),
        Tool[AddParams, int](f"{SERVER}_add", "Adds", _add, tool="add"),
        Tool[FailParams, None](f"{SERVER}_fail", "Fails", _fail, tool="fail"),
        Tool[FailParams, None](f"{SERVER}_broken", "Breaks", _broken, tool="broken"),
        Tool[SlowParams, str](
            f"{SERVER}_slow", "Takes long", slow, tool="slow", async_handler=slow_async, timeout=SECONDS
        ),
    ]
    yield Stage("native", None, "outfitter", {tool.tool: tool for tool in tools})
    leave.set()


TEXT = {"type": "string"}
SCRIPTED = (
    ScriptedTool(
        "echo",
        "Says its arguments",
        {"type": "object", "properties": {"text": TEXT, "api_key": TEXT, "pin": {**TEXT, "writeOnly": True}}},
    ),
    ScriptedTool(
        "add",
        "Adds",
        {
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 0}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    ),
    ScriptedTool("fail", "Fails", {"type": "object", "properties": {"message": TEXT}}),
    ScriptedTool("broken", "Breaks", {"type": "object", "properties": {"message": TEXT}}, "rpc_error"),
    ScriptedTool("slow", "Takes long", {"type": "object", "properties": {"seconds": {"type": "number"}}}, "sleep"),
)


@contextmanager
def bridged_stage() -> Generator[Stage]:
    """The tools at a scripted server, started as a process and bridged."""
    server = replace(stdio_server(Script(tools=SCRIPTED)), name=SERVER, limits=TimeLimits.of(call=SECONDS))
    with McpIntegrationSection(servers=[server], session=Session()) as section:
        tools = {tool.tool: tool for tool in section.tools()}
        yield Stage("mcp", SERVER, f"mcp:{SERVER}", tools)


STAGES = {"native": native_stage, "bridged": bridged_stage}
