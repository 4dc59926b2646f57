"""Commit only after looking at the diff: a policy on an MCP server's tools."""

import subprocess
import tempfile
from pathlib import Path

from outfitter import McpIntegrationSection, MCPServer, Session
from outfitter.catalog import Effect, ToolRule
from outfitter.policy import RulePolicy, SequentialDependencyPolicy
from outfitter.tools import Toolbox, ToolContext

with tempfile.TemporaryDirectory() as repository:
    subprocess.run(["git", "init", "--quiet", repository], check=True)
    Path(repository, "notes.md").write_text("one\n")
    git = MCPServer.stdio("git", "mcp-server-git", ("--repository", repository)).with_policies(
        SequentialDependencyPolicy(dependencies={"git_commit": {"git_diff_staged"}}),
        RulePolicy([ToolRule(("git_checkout",), Effect.DENY, reason="branches are the maintainer's")]),
    )
    session = Session()
    with McpIntegrationSection(servers=[git], session=session) as section:
        toolbox = Toolbox.of(section.tools(), ToolContext(session=session))
        toolbox.execute("git_git_add", {"repo_path": repository, "files": ["notes.md"]})

        early = toolbox.execute("git_git_commit", {"repo_path": repository, "message": "notes"})
        print(early.code, early.message)

        toolbox.execute("git_git_diff_staged", {"repo_path": repository})
        print(toolbox.execute("git_git_checkout", {"repo_path": repository, "branch_name": "x"}).message)

        late = toolbox.execute("git_git_diff_staged", {"repo_path": repository})
        print(late.success)
