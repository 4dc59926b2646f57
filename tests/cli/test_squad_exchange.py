"""A squad's endpoints in the files of other programs, and what those programs have in the squad's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal

FILE = ".squad/mcp-config.json"
GITHUB = "https://api.githubcopilot.com/mcp/"
EMPTY: dict[str, object] = {"servers": {}, "agentServers": {"lead": [], "backend-dev": []}}


def servers_of(terminal: Terminal) -> dict[str, Any]:
    """The servers of the squad file."""
    return json.loads((terminal.folder / FILE).read_text(encoding="utf-8"))["servers"]


@pytest.mark.promise("SQUAD-EXPORT")
@pytest.mark.parametrize(
    ("client", "file", "root", "reads"),
    [
        ("claude", ".mcp.json", "mcpServers", "Bearer ${OUTFITTER_TOKEN_BACKEND_DEV}"),
        ("copilot", ".github/mcp.json", "mcpServers", "Bearer ${OUTFITTER_TOKEN_BACKEND_DEV}"),
        ("vscode", ".vscode/mcp.json", "servers", "Bearer ${input:outfitter_token_backend_dev}"),
    ],
)
def test_each_agent_points_at_its_own_endpoint_and_reads_its_token_from_a_variable(
    client: str, file: str, root: str, reads: str, terminal: Terminal
) -> None:
    terminal.write(FILE, EMPTY)
    token = terminal.run("--catalog", ".squad", "token", "issue", "lead").out.strip()
    place = terminal.write(file, {root: {"mine": {"type": "http", "url": "https://mine.example/mcp"}}, "kept": True})
    done = terminal.run("squad", "export", "--for", client, OUTFITTER_TOKEN_LEAD=token)
    assert done.code == 0, done.err
    written = json.loads(place.read_text(encoding="utf-8"))
    assert written["kept"] is True
    assert set(written[root]) == {"mine", "outfitter-lead", "outfitter-backend-dev"}
    server = written[root]["outfitter-backend-dev"]
    assert server["url"] == "http://127.0.0.1:8700/mcp/backend-dev"
    assert server["headers"]["Authorization"] == reads
    assert token not in place.read_text(encoding="utf-8") + done.out


@pytest.mark.promise("SQUAD-EXPORT")
def test_some_agents_can_be_chosen_and_nothing_need_be_written(terminal: Terminal) -> None:
    terminal.write(FILE, EMPTY)
    before = terminal.snapshot()
    shown = terminal.run(
        *("squad", "export", "--for", "claude", "--agent", "lead", "--url", "https://tools.example/", "--dry-run"),
        "--json",
    ).json()
    assert shown["endpoints"] == {"outfitter-lead": "https://tools.example/mcp/lead"}
    assert shown["variables"] == ["OUTFITTER_TOKEN_LEAD"]
    assert terminal.snapshot() == before
    wrong = terminal.run("squad", "export", "--for", "claude", "--agent", "leed")
    assert (wrong.code, "did you mean 'lead'" in wrong.err) == (4, True)


def write_everywhere(terminal: Terminal) -> None:
    """What a machine and a repository hold: the same servers under several names, in several programs' words."""
    header = {"Authorization": "Bearer ${env:GITHUB_TOKEN}"}
    npx = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}
    terminal.write(".vscode/mcp.json", {"servers": {"github": {"type": "http", "url": GITHUB, "headers": header}}})
    terminal.write(".junie/mcp/mcp.json", {"mcpServers": {"memory": npx}})
    plain = {"type": "http", "url": GITHUB.rstrip("/"), "headers": {"authorization": "Bearer ${GITHUB_TOKEN}"}}
    terminal.write(".mcp.json", {"mcpServers": {"gh": plain}})
    latest = {"command": "npx", "args": ["@modelcontextprotocol/server-memory@latest"]}
    private = {
        "type": "http",
        "url": "https://tickets.example/mcp",
        "headers": {"X-Api-Key": "sk-live-0123456789abcdef"},
    }
    projects = {str(terminal.folder.resolve()): {"mcpServers": {"tickets": private}}}
    terminal.write(".claude.json", {"mcpServers": {"mem": latest}, "projects": projects})
    other = {"type": "http", "url": "https://other.example/mcp", "tools": ["*"]}
    terminal.write(".copilot/mcp-config.json", {"mcpServers": {"memory": other}})


@pytest.mark.promise("SQUAD-IMPORT")
def test_what_every_program_has_comes_once_and_without_its_secrets(terminal: Terminal) -> None:
    terminal.write(FILE, EMPTY)
    write_everywhere(terminal)
    before = terminal.snapshot()
    dry = terminal.run("squad", "import", "--dry-run", "--json").json()
    assert terminal.snapshot() == before
    assert set(dry["added"]) == {"github", "memory", "tickets", "memory-copilot"}
    assert [line.partition(" of ")[0] for line in dry["same"]] == ["'gh'", "'mem'"]
    (conflict,) = dry["conflicts"]
    assert "differs from 'memory' and is kept apart as 'memory-copilot'" in conflict

    done = terminal.run("squad", "import", "--to", "lead")
    assert done.code == 0, done.err
    assert set(servers_of(terminal)) == set(dry["added"])
    written = (terminal.folder / FILE).read_text(encoding="utf-8")
    assert "sk-live-0123456789abcdef" not in written + done.out
    assert servers_of(terminal)["tickets"]["headers"] == {"X-Api-Key": "${TICKETS_API_KEY}"}
    assert json.loads(written)["agentServers"] == {"lead": list(dry["added"]), "backend-dev": []}
    again = terminal.run("squad", "import", "--json").json()
    assert (again["added"], len(again["same"])) == ({}, 6)
    assert terminal.run("squad", "check").code == 0


@pytest.mark.promise("SQUAD-IMPORT")
@pytest.mark.parametrize(("choice", "url"), [("keep", "https://mine.example/mcp"), ("take", GITHUB)])
def test_a_server_that_differs_is_told_and_the_choice_is_yours(choice: str, url: str, terminal: Terminal) -> None:
    mine = {"type": "http", "url": "https://mine.example/mcp"}
    terminal.write(FILE, {"servers": {"github": mine}, "agentServers": {"lead": ["github"]}})
    terminal.write(".vscode/mcp.json", {"servers": {"github": {"type": "http", "url": GITHUB}}})
    done = terminal.run("squad", "import", "--no-home", "--conflict", choice)
    assert "conflict: 'github' of" in done.out
    assert {name: server["url"] for name, server in servers_of(terminal).items()} == {"github": url}


@pytest.mark.promise("SQUAD-IMPORT")
def test_the_same_place_with_other_headers_is_a_conflict_under_any_name(terminal: Terminal) -> None:
    server = {"type": "http", "url": GITHUB}
    terminal.write(FILE, {"servers": {"github": server}, "agentServers": {}})
    terminal.write(".mcp.json", {"mcpServers": {"gh": {**server, "headers": {"Authorization": "Bearer ${MY_TOKEN}"}}}})
    done = terminal.run("squad", "import", "--no-home", "--json").json()
    assert "'gh' of" in done["conflicts"][0]
    assert "kept apart as 'gh'" in done["conflicts"][0]


@pytest.mark.promise("SQUAD-IMPORT")
def test_a_file_that_cannot_be_read_is_told_and_holds_up_no_other(terminal: Terminal, tmp_path: Path) -> None:
    terminal.write(".vscode/mcp.json", "{")
    terminal.write(".mcp.json", {"mcpServers": {"a": {"command": "a"}}})
    terminal.run("squad", "init", "--yes")
    terminal.run("squad", "export", "--for", "copilot")
    home = tmp_path / "home"
    (home / ".config" / "Code" / "User").mkdir(parents=True)
    (home / ".config/Code/User/mcp.json").write_text(json.dumps({"servers": {"b": {"command": "b"}}}))
    done = terminal.run("squad", "import", HOME=str(home))
    assert done.code == 0, done.err
    assert {"a", "b"} <= set(servers_of(terminal))
    assert ".vscode/mcp.json is left out" in done.out
    assert "it is an endpoint of Outfitter itself" in done.out


@pytest.mark.promise("SQUAD-IMPORT")
def test_a_repository_without_a_squad_file_gets_one_and_comments_that_are_lost_are_told(terminal: Terminal) -> None:
    theirs = terminal.write("theirs.json", {"mcpServers": {"a": {"command": "a"}}})
    assert terminal.run("squad", "import", str(theirs)).code == 0
    assert set(servers_of(terminal)) == {"a"}
    terminal.write(FILE, '{\n  // who gets what\n  "servers": {}, "agentServers": {}\n}')
    assert "comments" in terminal.run("squad", "import", str(theirs)).out
    wrong = terminal.run("squad", "import", str(theirs), "--to", "nobody")
    assert (wrong.code, "no agent 'nobody'" in wrong.err) == (4, True)
