"""Tools that are searched instead of listed: three tools of ours that find, describe and call the others.

The definitions are those of the gateway (``calls.meta_tools``). A call goes the way of every call, under the tool's own
name: its arguments are checked, its policies asked, its event left; the three have events of their own. Nothing is
connected here: only tools that are there already can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from outfitter.calls import (
    CALL_TOOL,
    DESCRIBE_TOOL,
    META_TOOLS,
    SEARCH_TOOLS,
    ToolFinder,
    ToolJson,
    ToolResult,
    described_text,
    found_text,
)
from outfitter.catalog import JsonValue
from outfitter.policy import ToolPolicy
from outfitter.schemas import Shape, read_schema
from outfitter.tools.context import ToolContext
from outfitter.tools.execution import aexecute, execute
from outfitter.tools.tool import Tool

_UNKNOWN = "unknown_tool"


@dataclass(frozen=True, slots=True)
class SearchedTool:
    """A tool that can be found, with what holds for its calls because of where it comes from."""

    tool: Tool[Any, Any]
    policies: tuple[ToolPolicy, ...] = ()
    resources: Mapping[type, object] = field(default_factory=dict[type, object], repr=False)

    def context(self, context: ToolContext) -> ToolContext:
        """The surroundings of its calls: the call that asked for it was counted already."""
        more = tuple(policy for policy in self.policies if all(policy is not own for own in context.policies))
        found = context.resources if not self.resources else replace(
            context.resources, entries={**self.resources, **context.resources.entries}
        )  # fmt: skip
        return replace(context, policies=(*context.policies, *more), resources=found, budget=None, call_id="")


@dataclass(slots=True, eq=False)
class _Search:
    """The tools by name, and their finder once somebody has searched."""

    tools: Mapping[str, SearchedTool]
    shapes: Mapping[str, Shape]
    _finder: ToolFinder | None = None

    def search(self, params: object) -> ToolResult[str]:
        """The tools that fit a query."""
        if self._finder is None:
            self._finder = ToolFinder.of([tool_json(one.tool) for one in self.tools.values()])
        text = found_text(self._finder, self._given(SEARCH_TOOLS, params))
        return _told(text) if text is not None else ToolResult[str].error("the query must be a text")

    def describe(self, params: object) -> ToolResult[str]:
        """The definition of one tool."""
        name = str(self._given(DESCRIBE_TOOL, params).get("name"))
        found = self.tools.get(name)
        return _unknown(name) if found is None else _told(described_text(tool_json(found.tool)))

    def call(self, params: object, *, context: ToolContext) -> ToolResult[Any]:
        """The result of a call, waited for."""
        name, arguments = self._asked(params)
        found = self.tools.get(name)
        return _unknown(name) if found is None else execute(found.tool, arguments, context=found.context(context))

    async def acall(self, params: object, *, context: ToolContext) -> ToolResult[Any]:
        """The result of a call, awaited."""
        name, arguments = self._asked(params)
        found = self.tools.get(name)
        if found is None:
            return _unknown(name)
        return await aexecute(found.tool, arguments, context=found.context(context))

    def _asked(self, params: object) -> tuple[str, JsonValue]:
        given = self._given(CALL_TOOL, params)
        return str(given.get("name")), given.get("arguments", {})

    def _given(self, name: str, params: object) -> Mapping[str, JsonValue]:
        given: Any = self.shapes[name].dump(params)
        return given


def searching_tools(tools: Sequence[SearchedTool]) -> tuple[Tool[Any, Any], ...]:
    """The three tools over these; of several tools of one name the first counts."""
    named = {one.tool.name: one for one in reversed(tools)}
    shapes = {str(one["name"]): read_schema(one["inputSchema"], str(one["name"])) for one in META_TOOLS}
    search = _Search({name: named[name] for name in dict.fromkeys(one.tool.name for one in tools)}, shapes)
    handlers: Mapping[str, Callable[..., Any]] = {
        SEARCH_TOOLS: search.search,
        DESCRIBE_TOOL: search.describe,
        CALL_TOOL: search.call,
    }
    return tuple(
        Tool[Any, Any](
            name,
            str(one["description"]),
            handlers[name],
            arguments=shapes[name],
            async_handler=search.acall if name == CALL_TOOL else None,
            reads_only=name != CALL_TOOL,
            is_bounded=True,
            is_free=True,
            accepts_overrides=False,
        )
        for name, one in ((str(one["name"]), one) for one in META_TOOLS)
    )


def tool_json(tool: Tool[Any, Any]) -> ToolJson:
    """A tool as a list of tools says it."""
    said: dict[str, JsonValue] = {"name": tool.name}
    if tool.title:
        said["title"] = tool.title
    return {**said, "description": tool.description, "inputSchema": dict(tool.input_schema)}


def _told(text: str) -> ToolResult[str]:
    return ToolResult[str].ok(text, text)


def _unknown(name: str) -> ToolResult[Any]:
    return ToolResult[Any].error(f"Unknown tool: {name}", code=_UNKNOWN)
