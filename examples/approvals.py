"""Ask a person before a commit: a rule on an MCP server's tools, and who answers it."""

import subprocess
import tempfile
from pathlib import Path

from outfitter import McpIntegrationSection, MCPServer, Session
from outfitter.calls import ToolInvoked
from outfitter.catalog import Effect, ToolRule
from outfitter.policy import RulePolicy, Verdict, Wish
from outfitter.tools import Toolbox, ToolContext


def ask_alice(wish: Wish) -> Verdict:
    """A person would look at this; Alice approves commits that say why."""
    print(f"{wish.tool} of {wish.server}: {wish.reason}: {wish.arguments['message']!r}")
    return Verdict(is_yes="because" in str(wish.arguments["message"]), by="alice")


with tempfile.TemporaryDirectory() as repository:
    subprocess.run(["git", "init", "--quiet", repository], check=True)
    Path(repository, "notes.md").write_text("one\n")
    for name, value in (("user.name", "An Agent"), ("user.email", "agent@example.com")):
        subprocess.run(["git", "-C", repository, "config", name, value], check=True)
    rule = ToolRule(("git_commit",), Effect.ASK, reason="commits are for good")
    git = MCPServer.stdio("git", "mcp-server-git", ("--repository", repository)).with_policies(RulePolicy([rule]))

    session = Session(approver=ask_alice)
    with McpIntegrationSection(servers=[git], session=session) as section:
        toolbox = Toolbox.of(section.tools(), ToolContext(session=session, approval_wait=60))
        toolbox.execute("git_git_add", {"repo_path": repository, "files": ["notes.md"]})
        for message in ("notes", "notes, because the team asked for them"):
            result = toolbox.execute("git_git_commit", {"repo_path": repository, "message": message})
            print(result.code or "done", "-", result.message)

    for event in session[ToolInvoked].all():
        print(event.name, "-", event.decision)
