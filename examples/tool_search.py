"""Many tools, three definitions: the model searches its tools, and what they cost is measured."""

import json

from outfitter import McpIntegrationSection, MCPServer, Prompt, PromptTemplate, Session
from outfitter.calls import META_TOOLS, definition_tokens, total_tokens
from outfitter.catalog import JsonValue

session = Session()
servers = [
    MCPServer.stdio("git", "mcp-server-git"),
    MCPServer.stdio("time", "mcp-server-time", ("--local-timezone", "UTC")),
]

with McpIntegrationSection(servers=servers, session=session, tool_search=True) as section:
    told = [
        {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.input_schema)}
        for tool in section.tools()
    ]
    heaviest = max(told, key=definition_tokens)
    print(f"{len(told)} tools: about {total_tokens(told)} tokens of definitions")
    print(f"the heaviest is {heaviest['name']} with {definition_tokens(heaviest)}")
    print(f"the three that stand for them: {total_tokens(META_TOOLS)}")

    rendered = Prompt(PromptTemplate(ns="examples", key="tool-search", sections=[section])).render(session=session)
    print("the model gets:", [tool.name for tool in rendered.tools])

    tools = rendered.toolbox()
    found = json.loads(tools.execute("search_tools", {"query": "time in another zone"}).message)
    print("found:", [tool["name"] for tool in found["tools"]][:2])
    name = "time_convert_time"
    print("described:", tools.execute("describe_tool", {"name": name}).message[:60], "…")
    noon: dict[str, JsonValue] = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    answer = tools.execute("call_tool", {"name": name, "arguments": noon})
    print("called:", json.loads(answer.message)["target"]["datetime"][11:16], "in Tokyo")
    print("a tool that is not there:", tools.execute("call_tool", {"name": "time_travel"}).message)
