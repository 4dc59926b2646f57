"""A set of tools under their names, with the surroundings they are called in: what an agent loop holds."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from outfitter.basics import quote, suggest
from outfitter.calls import Refused, ToolInvoked, ToolResult, redact, result_of
from outfitter.catalog import JsonValue
from outfitter.errors import Conflict
from outfitter.tools.context import ToolContext
from outfitter.tools.execution import aexecute, execute
from outfitter.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Tools by name; a name that is not here is answered and recorded like any other refused call."""

    tools: Mapping[str, Tool[Any, Any]]
    context: ToolContext = field(default_factory=ToolContext)

    @classmethod
    def of(cls, tools: Iterable[Tool[Any, Any]], context: ToolContext | None = None) -> Toolbox:
        """The box of these tools; Conflict when two have one name."""
        named: dict[str, Tool[Any, Any]] = {}
        for tool in tools:
            if tool.name in named and named[tool.name] is not tool:
                raise Conflict(f"two tools are named '{tool.name}'", hint="give one of the servers a tool_prefix")
            named[tool.name] = tool
        return cls(named, context or ToolContext())

    def __iter__(self) -> Iterator[Tool[Any, Any]]:
        """Go through the tools in their order."""
        return iter(self.tools.values())

    def execute(
        self, name: str, arguments: Mapping[str, JsonValue] | None = None, *, call_id: str = ""
    ) -> ToolResult[Any]:
        """The result of calling a tool by its name."""
        tool = self.tools.get(name)
        context = replace(self.context, call_id=call_id)
        return self._unknown(name, arguments, call_id) if tool is None else execute(tool, arguments, context=context)

    async def aexecute(
        self, name: str, arguments: Mapping[str, JsonValue] | None = None, *, call_id: str = ""
    ) -> ToolResult[Any]:
        """The result of calling a tool by its name, awaited."""
        tool = self.tools.get(name)
        if tool is None:
            return self._unknown(name, arguments, call_id)
        return await aexecute(tool, arguments, context=replace(self.context, call_id=call_id))

    def _unknown(self, name: str, arguments: Mapping[str, JsonValue] | None, call_id: str) -> ToolResult[Any]:
        hint = suggest(name, self.tools)
        outcome = Refused(f"there is no tool {quote(name)} ({hint})", "unknown_tool")
        self.context.session.dispatch(
            ToolInvoked(
                name=name,
                adapter=self.context.adapter,
                params=redact(arguments) if isinstance(arguments, Mapping) else {},
                outcome=outcome,
                source="native",
                created_at=datetime.now(UTC),
                duration=0.0,
                call_id=call_id or uuid.uuid4().hex,
                session_id=self.context.session.session_id,
                decision="unasked",
            )
        )
        return result_of(outcome)
