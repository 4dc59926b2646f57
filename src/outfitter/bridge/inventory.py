"""What a model reads about bridged tools: an inventory as Markdown, or the author's own template.

What a server says of itself is data: it is written as it is and never read as a template.
"""

from __future__ import annotations

import string
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from outfitter.errors import PromptValidationError
from outfitter.tools import Tool

ToolsByServer = Mapping[str, Sequence[Tool[Any, Any]]]
_INTRODUCTION = "The following external tools are available via MCP:"
_SEARCHED = "External tools are available via MCP. Find them with search_tools. How many each server has:"
_NONE = "No external tools are available."


def write_inventory(tools: ToolsByServer) -> str:
    """The tools under the names of their servers, each with the first line of its description."""
    chapters = [
        "\n".join((f"### {server}", "", *map(_write_tool, offered))) for server, offered in tools.items() if offered
    ]
    return "\n\n".join((_INTRODUCTION, *chapters)) if chapters else _NONE


def tell_searched(tools: ToolsByServer) -> str:
    """How many tools each server has, where they are searched and not listed."""
    counts = [f"- {server}: {len(offered)}" for server, offered in tools.items() if offered]
    return "\n".join((_SEARCHED, "", *counts)) if counts else _NONE


def _write_tool(tool: Tool[Any, Any]) -> str:
    lines = tool.description.strip().splitlines() or [tool.title]
    return f"- `{tool.name}` - {lines[0].strip()}" if lines[0].strip() else f"- `{tool.name}`"


def fill_template(template: str, tools: ToolsByServer, params: object, where: str) -> str:
    """The template with ``${server_names}``, ``${tool_count}``, ``${tools_by_server}`` and the fields of params."""
    listed = "\n".join(f"{server}: {', '.join(tool.name for tool in offered)}" for server, offered in tools.items())
    values: dict[str, object] = {
        **_fields(params),
        "server_names": ", ".join(tools),
        "tool_count": sum(map(len, tools.values())),
        "tools_by_server": listed,
    }
    try:
        return string.Template(textwrap.dedent(template).strip()).substitute(values)
    except KeyError as unknown:
        hint = f"known: {', '.join(sorted(values))}"
        raise PromptValidationError(f"section '{where}': the template asks for {unknown}", hint=hint) from None
    except ValueError as fault:
        raise PromptValidationError(f"section '{where}': {fault}", hint="write $$ for a dollar sign") from None


def _fields(params: object) -> dict[str, object]:
    if params is None or not is_dataclass(params) or isinstance(params, type):
        return {}
    return {field.name: getattr(params, field.name) for field in fields(params)}
