"""What the bridge tests share: scripted servers, tools by their own names, and events that are waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from outfitter.bridge import McpConnectionPool, McpIntegrationSection
from outfitter.calls import ToolInvoked, ToolResult
from outfitter.catalog import JsonValue, MCPServer, TimeLimits
from outfitter.session import Session
from outfitter.testing import Script, ScriptedTool, stdio_server
from outfitter.tools import Tool, ToolContext, aexecute, execute
from outfitter.upstream import Patience, Pool

E = TypeVar("E")
QUICK = Patience(tries=2, first_wait=0.02, longest_wait=0.05, cooldown=30)
DEAD = MCPServer.http("dead", "http://127.0.0.1:9/mcp")


def quick_pool() -> McpConnectionPool:
    """A pool that does not wait long for the dead."""
    return McpConnectionPool(make_pool=lambda: Pool(patience=QUICK))


def scripted(name: str = "one", *tools: ScriptedTool, call: float = 30.0, **script: Any) -> MCPServer:  # noqa: ANN401 - any field of a script
    """A scripted server as a process; with the built-in tools unless others are given."""
    played = Script(tools=tools, **script) if tools else Script(**script)
    return replace(stdio_server(played, name=name), limits=TimeLimits.of(call=call))


def answering(name: str, result: dict[str, JsonValue], **extra: JsonValue) -> ScriptedTool:
    """A tool that always gives this result."""
    return ScriptedTool(name, f"Answers {name}", kind="answer", result=result, extra=dict(extra))


def tool_of(section: McpIntegrationSection, name: str) -> Tool[Any, Any]:
    """The tool of this own name."""
    return next(tool for tool in section.tools() if tool.tool == name)


def context_of(section: McpIntegrationSection) -> ToolContext:
    """The surroundings in the section's session."""
    assert section.session is not None
    return ToolContext(session=section.session)


def call(section: McpIntegrationSection, name: str, **arguments: JsonValue) -> ToolResult[Any]:
    """The result of a tool by its own name."""
    return execute(tool_of(section, name), arguments, context=context_of(section))


async def acall(section: McpIntegrationSection, name: str, **arguments: JsonValue) -> ToolResult[Any]:
    """The result of a tool by its own name, awaited."""
    return await aexecute(tool_of(section, name), arguments, context=context_of(section))


def value_of(result: ToolResult[Any]) -> Any:  # noqa: ANN401 - whatever the tool promises
    """The value of a call that has one."""
    assert result.value is not None, result
    return result.value


def structured(result: ToolResult[Any]) -> dict[str, Any]:
    """The structured part of an answer that is its own value."""
    return value_of(result)["structuredContent"]


def when_told(begin: Callable[[], object]) -> Callable[[float, float | None, str], None]:
    """A report that tells only that there was progress."""

    def report(_progress: float, _total: float | None, _message: str) -> None:
        begin()

    return report


def last_event(session: Session) -> ToolInvoked:
    """The newest call that the session remembers."""
    event = session[ToolInvoked].latest()
    assert event is not None
    return event


class Waiting:
    """Hears events of one type and lets a thread wait for them."""

    def __init__(self, session: Session, kind: type[Any]) -> None:
        self.events: list[Any] = []
        self._heard = threading.Condition()
        session.dispatcher.subscribe(kind, self._hear)

    def _hear(self, event: object) -> None:
        with self._heard:
            self.events.append(event)
            self._heard.notify_all()

    def wait(self, is_enough: Callable[[list[Any]], bool] = bool, within: float = 20.0) -> list[Any]:
        """The events, once they are enough."""
        with self._heard:
            assert self._heard.wait_for(lambda: is_enough(self.events), within), f"only {self.events}"
            return list(self.events)
