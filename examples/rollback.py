"""A failing call leaves no trace in the session."""

from dataclasses import dataclass

from outfitter import McpIntegrationSection, MCPServer, Session, Tool, ToolResult
from outfitter.calls import ToolInvoked
from outfitter.tools import ToolContext, execute


@dataclass(frozen=True)
class Plan:
    """One step that the agent means to take."""

    step: str


@dataclass(frozen=True)
class Meeting:
    """When people meet."""

    time: str
    timezone: str


time = MCPServer.stdio("time", "mcp-server-time", ("--local-timezone", "UTC"))
session = Session()

with McpIntegrationSection(servers=[time], session=session) as section:
    convert = next(tool for tool in section.tools() if tool.tool == "convert_time")

    def book(params: Meeting, *, context: ToolContext) -> ToolResult[str]:
        """Write the plan down first, then ask the server: if that fails, the plan goes too."""
        context.session[Plan].append(Plan(f"meet at {params.time} in {params.timezone}"))
        asked = {"source_timezone": params.timezone, "time": params.time, "target_timezone": "UTC"}
        return execute(convert, asked, context=context)

    booking = Tool[Meeting, str]("book_meeting", "Book a meeting.", book)
    context = ToolContext(session=session)

    print(execute(booking, Meeting("09:30", "Asia/Tokyo"), context=context).success, session[Plan].all())
    print(execute(booking, Meeting("09:30", "Atlantis/Capital"), context=context).success, session[Plan].all())
    assert len(session[Plan].all()) == 1
    assert len(session[ToolInvoked].all()) == 4  # the log stays: two bookings, two conversions
