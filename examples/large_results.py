"""A result that is too large for a model: it gets the beginning and the end, and a tool to read the rest."""

import subprocess
import tempfile
from pathlib import Path

from outfitter import McpIntegrationSection, MCPServer, Session
from outfitter.bridge import ResultShelf
from outfitter.calls import READER
from outfitter.tools import ToolContext, execute

NAMES = ("-c", "user.name=me", "-c", "user.email=me@example.com")

with tempfile.TemporaryDirectory() as folder:

    def git(*words: str) -> None:
        """Run git there."""
        subprocess.run(["git", "-C", folder, *NAMES, *words], check=True, capture_output=True)

    lines = [f"line {number}: nothing to see" for number in range(10_000)]
    lines[7_777] = "line 7777: here it is"
    git("init")
    Path(folder, "long.txt").write_text("\n".join(lines), encoding="utf-8")
    git("add", "long.txt")
    git("commit", "-m", "A long file")

    session, shelf = Session(), ResultShelf(limit=4096)
    server = MCPServer.stdio("git", "mcp-server-git", ("--repository", folder))
    with McpIntegrationSection(servers=[server], session=session, shelf=shelf) as section:
        tools = {tool.tool: tool for tool in section.tools()}
        arguments = {"repo_path": folder, "revision": "HEAD"}
        shown = execute(tools["git_show"], arguments, context=ToolContext(session=session))
        print(shown.message.partition("\n")[0], f"({len(shown.message)} characters for the model)")
        handle = shown.message.partition("kept as ")[2].partition(". ")[0]
        found = execute(tools[READER], {"handle": handle, "find": "here it is"}, context=ToolContext(session=session))
        print(found.message)
        assert "line 7777: here it is" in found.message
