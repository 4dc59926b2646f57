"""One server's tools as typed Python tools."""

from outfitter import McpIntegrationSection, MCPServer, Session
from outfitter.tools import ToolContext, execute

time = MCPServer.stdio("time", "mcp-server-time", ("--local-timezone", "UTC"))
session = Session()

with McpIntegrationSection(servers=[time], session=session) as section:
    tools = {tool.name: tool for tool in section.tools()}
    convert = tools["time_convert_time"]
    print(convert.params_type)

    params = convert.params_type(source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
    result = execute(convert, params, context=ToolContext(session=session))
    print(result.success, result.message)

    wrong = execute(convert, {"source_timezone": "UTC"}, context=ToolContext(session=session))
    print(wrong.code, wrong.message)
