"""A server that is not started before the model asks for its section."""

from outfitter import MarkdownSection, MCPServer, Prompt, PromptTemplate, Session
from outfitter.prompt import SectionVisibility

clock = MarkdownSection(
    title="Clock",
    key="clock",
    template="Ask the time server; do not guess.",
    summary="Time zones and conversions.",
    visibility=SectionVisibility.SUMMARY,
    mcps=[MCPServer.stdio("time", "mcp-server-time", ("--local-timezone", "UTC"))],
)
session = Session()
prompt = Prompt(PromptTemplate[None](ns="demo", key="clock", sections=[clock]))

rendered = prompt.render(session=session)
print(rendered.text)
assert rendered.mcps == ()  # nothing to start, nothing to connect

# What the model does when it needs the section:
opened = rendered.toolbox(session=session).execute(
    "open_sections", {"section_keys": ["clock"], "reason": "the user asks for the time in Tokyo"}
)
print(opened.message)

again = prompt.render(session=session, discover_mcp_tools=True)
print([server.name for server in again.mcps])
print([spec.name for bundle in again.mcp_tools for spec in bundle.tool_specs])
