"""The agent gets exactly the tools it should have."""

import subprocess
import tempfile

from outfitter import McpIntegrationSection, MCPServer, Session, ToolFilter

with tempfile.TemporaryDirectory() as repository:
    subprocess.run(["git", "init", "--quiet", repository], check=True)
    reader = MCPServer.stdio(
        "git",
        "mcp-server-git",
        ("--repository", repository),
        tools=ToolFilter(include=("git_*",), exclude=("git_commit", "git_reset", "git_add", "git_checkout")),
        tool_prefix="repo",
    )
    with McpIntegrationSection(servers=[reader], session=Session()) as section:
        print(section.render_body(None))
        assert not any("commit" in tool.name for tool in section.tools())
