"""The same server, but one of its tools has other words and one argument less."""

from typing import Any

from outfitter import McpIntegrationSection, MCPServer, Session, Tool
from outfitter.catalog import ToolOverride
from outfitter.tools import ToolContext, execute

OFFICE = ToolOverride(
    title="Office time",
    description="What time it is at the office",
    defaults={"timezone": "Europe/Berlin"},
    hidden=("timezone",),
)


def find(section: McpIntegrationSection, name: str) -> Tool[Any, Any]:
    """The tool of this own name."""
    return next(tool for tool in section.tools() if tool.tool == name)


session = Session()
time = MCPServer.stdio("time", "mcp-server-time")
with McpIntegrationSection(
    servers=[time], session=session, overrides={"time": {"get_current_time": OFFICE}}
) as section:
    tool = find(section, "get_current_time")
    print(tool.title, "-", tool.description, tool.input_schema.get("properties"))
    print(execute(tool, {}, context=ToolContext(session=session)).message)
    refused = execute(tool, {"timezone": "UTC"}, context=ToolContext(session=session))
    print(refused.message)
    assert not refused.success
