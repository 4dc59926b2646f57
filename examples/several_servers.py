"""Two servers in one prompt, one session, one event for every call."""

import subprocess
import tempfile

from outfitter import MarkdownSection, McpIntegrationSection, MCPServer, Prompt, PromptTemplate, Session
from outfitter.calls import ToolInvoked

with tempfile.TemporaryDirectory() as repository:
    subprocess.run(["git", "init", "--quiet", repository], check=True)
    session = Session()
    integrations = McpIntegrationSection(
        servers=[
            MCPServer.stdio("git", "mcp-server-git", ("--repository", repository)),
            MCPServer.stdio("time", "mcp-server-time", ("--local-timezone", "UTC")),
        ],
        session=session,
        template="External tools of ${server_names}, ${tool_count} in all.",
    )
    task = MarkdownSection(title="Task", key="task", template="Say when the repository was last changed.")

    with integrations:
        prompt = Prompt(PromptTemplate[None](ns="demo", key="report", sections=[task, integrations]))
        rendered = prompt.render()
        print(rendered.text)

        toolbox = rendered.toolbox(session=session)
        toolbox.execute("git_git_status", {"repo_path": repository})
        toolbox.execute("time_get_current_time", {"timezone": "Europe/Paris"})
        toolbox.execute("time_travel", {})

    for event in session[ToolInvoked].all():
        print(f"{event.adapter:10} {event.name:22} {type(event.outcome).__name__:8} {event.duration * 1000:.0f} ms")
