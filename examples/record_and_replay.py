"""A real server recorded once, then played back without it; and the same server behind a bad connection."""

import tempfile
from pathlib import Path

from outfitter import McpIntegrationSection, MCPServer, Session, ToolResult
from outfitter.testing import FaultProxy, FaultRates, load_cassette, recorded_server, replayed_server
from outfitter.tools import ToolContext, execute

time = MCPServer.stdio("time", "mcp-server-time", ("--local-timezone", "UTC"))


def noon_in(server: MCPServer, zone: str) -> ToolResult[object]:
    """What the server says about noon."""
    session = Session()
    with McpIntegrationSection(servers=[server], session=session) as section:
        tools = {tool.name: tool for tool in section.tools()}
        asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": zone}
        return execute(tools["time_convert_time"], asked, context=ToolContext(session=session))


with tempfile.TemporaryDirectory() as folder:
    cassette = Path(folder, "time.jsonl")

    live = noon_in(recorded_server(time, cassette), "Asia/Tokyo")
    print([exchange.method for exchange in load_cassette(cassette).exchanges])

    played = noon_in(replayed_server(cassette, time), "Asia/Tokyo")
    print(played.success, played.message == live.message)

    missed = noon_in(replayed_server(cassette, time), "Europe/Paris")
    print(missed.success, "not recorded" in missed.message)

with FaultProxy(time, FaultRates.parse("fail=100%,method=tools/call,seed=7")) as proxy:
    failed = noon_in(proxy.server, "Asia/Tokyo")
    print(failed.success, dict(proxy.report.counts))
