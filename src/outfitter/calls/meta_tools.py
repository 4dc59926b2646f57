"""The three tools that stand for all others: search, describe, call. The same for every agent, so that they are cached.

What they are called, what a model is told of them, and what the first two answer. Who may find what, and how a call is
made, is decided by whoever offers them: the gateway, or a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from outfitter.calls.finding import ToolFinder, ToolJson, arguments_of, description_of, title_of
from outfitter.catalog import JsonValue

SEARCH_TOOLS, DESCRIBE_TOOL, CALL_TOOL = "search_tools", "describe_tool", "call_tool"
DEFAULT_FOUND, MOST_FOUND = 5, 50
_LONGEST_SAID = 300
_NAME: dict[str, JsonValue] = {"type": "string", "description": "The name of a tool, as search_tools gives it."}


def _definition(
    name: str, description: str, required: list[JsonValue], properties: dict[str, JsonValue], *, only_reads: bool
) -> ToolJson:
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": only_reads},
    }


META_TOOLS: Sequence[ToolJson] = (
    _definition(
        SEARCH_TOOLS,
        "Find tools by what they do. Your tools are not listed: search first, with a few words for what you want to "
        "do, then use describe_tool to see what a tool needs, and call_tool to use it.",
        ["query"],
        {
            "query": {"type": "string", "description": "What the tool should do, in a few words."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_FOUND,
                "default": DEFAULT_FOUND,
                "description": "How many tools to show at most.",
            },
        },
        only_reads=True,
    ),
    _definition(
        DESCRIBE_TOOL,
        "Show the whole definition of a tool: what it does and the schema of its arguments.",
        ["name"],
        {"name": _NAME},
        only_reads=True,
    ),
    _definition(
        CALL_TOOL,
        "Call a tool by its name. The answer is the tool's own.",
        ["name"],
        {
            "name": _NAME,
            "arguments": {"type": "object", "description": "The arguments, as the tool's own schema wants them."},
        },
        only_reads=False,
    ),
)
META_NAMES = frozenset({SEARCH_TOOLS, DESCRIBE_TOOL, CALL_TOOL})


def found_text(finder: ToolFinder, arguments: Mapping[str, JsonValue]) -> str | None:
    """What ``search_tools`` answers; None when the query is no text."""
    query, limit = arguments.get("query"), arguments.get("limit", DEFAULT_FOUND)
    if not isinstance(query, str):
        return None
    most = limit if isinstance(limit, int) and not isinstance(limit, bool) else DEFAULT_FOUND
    found = finder.find(query, max(1, min(most, MOST_FOUND)))
    told: dict[str, JsonValue] = {"tools": [_brief(tool) for tool in found], "searched": len(finder.tools)}
    if not found:
        told["note"] = "no tool has any of these words: try others"
    return _text(told)


def described_text(tool: ToolJson) -> str:
    """What ``describe_tool`` answers."""
    return _text(tool)


def _brief(tool: ToolJson) -> dict[str, JsonValue]:
    """A tool in short: enough to choose it."""
    said = " ".join(description_of(tool).split())
    brief: dict[str, JsonValue] = {"name": tool.get("name")}
    if title_of(tool):
        brief["title"] = title_of(tool)
    brief["description"] = said if len(said) <= _LONGEST_SAID else said[: _LONGEST_SAID - 1] + "…"
    schema = tool.get("inputSchema")
    required = schema.get("required") if isinstance(schema, dict) else None
    needed = set(map(str, required)) if isinstance(required, list) else set[str]()
    brief["arguments"] = [name if name in needed else f"{name}?" for name in arguments_of(tool)]
    return brief


def _text(value: Mapping[str, JsonValue]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
