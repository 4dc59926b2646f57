"""Many calls at once on one shared connection."""

import asyncio

from outfitter import McpIntegrationSection, MCPServer, Session
from outfitter.bridge import McpConnectionPool
from outfitter.tools import Toolbox, ToolContext

ZONES = ("Asia/Tokyo", "Europe/Paris", "America/New_York", "Africa/Nairobi")
time = MCPServer.stdio("time", "mcp-server-time", ("--local-timezone", "UTC"))


async def main() -> None:
    """Two agents, two sessions, one process of the server."""
    first, second = Session(), Session()
    async with (
        McpConnectionPool() as pool,
        McpIntegrationSection(servers=[time], session=first, pool=pool) as one,
        McpIntegrationSection(servers=[time], session=second, pool=pool) as two,
    ):
        boxes = [
            Toolbox.of(section.tools(), ToolContext(session=session))
            for section, session in ((one, first), (two, second))
        ]
        results = await asyncio.gather(
            *(box.aexecute("time_get_current_time", {"timezone": zone}) for box in boxes for zone in ZONES)
        )
        print([result.success for result in results])


asyncio.run(main())
