"""The squad's file from the command line: made from a roster or by asking, checked, its new tools approved."""

from __future__ import annotations

import json
import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from outfitter.testing import Script, stdio_server
from tests.cli.terminal import Terminal

TEAM = """# The Nostromo

## Coordinator

| Name | Role | Notes |
|------|------|-------|
| Squad | Coordinator | Routes work. |

## Members

| Name | Role | Charter | Status |
|------|------|---------|--------|
| Ripley | Lead | — | ✅ Active |
| Dallas | Backend Dev | — | ✅ Active |
| Lambert | QA Engineer | — | ✅ Active |
| Ash | Session Logger | — | 📋 Silent |
| Jones | Ship's Cat | — | ✅ Active |
"""
ROLES = {"lead", "backend-dev", "frontend-dev", "tester", "designer", "scribe"}
FILE = ".squad/mcp-config.json"


def squad_of(terminal: Terminal) -> dict[str, Any]:
    """What the squad file says."""
    return json.loads((terminal.folder / FILE).read_text(encoding="utf-8"))


def scripted() -> dict[str, object]:
    """A real server process, as a squad file writes it."""
    server = stdio_server(Script("x"))
    return {"command": server.command, "args": list(server.args)}


@pytest.mark.promise("SQUAD-INIT")
def test_init_takes_the_roster_and_holds_each_member_to_its_role(terminal: Terminal) -> None:
    terminal.write(".squad/team.md", TEAM)
    made = terminal.run("squad", "init", "--yes", GITHUB_TOKEN="ghp_this_is_a_value")
    assert made.code == 0, made.err
    written = squad_of(terminal)
    assert written["roles"] == {
        "ripley": "lead",
        "dallas": "backend-dev",
        "lambert": "tester",
        "ash": "scribe",
        "jones": "none",
    }
    assert set(written["agentServers"]) == set(written["roles"])
    assert set(written["servers"]) == {"github", "filesystem"}
    assert "no preset for the role" in made.out
    text = (terminal.folder / FILE).read_text(encoding="utf-8")
    assert "ghp_this_is_a_value" not in text + made.out
    assert "Bearer ${GITHUB_TOKEN}" in text
    plan = terminal.run("--catalog", ".squad", "explain", "lambert")
    assert "writes only under tests/**" in plan.out


@pytest.mark.promise("SQUAD-INIT")
def test_init_without_a_roster_has_an_agent_for_every_role_and_replaces_nothing_unasked(terminal: Terminal) -> None:
    dry = terminal.run("squad", "init", "--yes", "--dry-run")
    assert (dry.code, (terminal.folder / FILE).exists()) == (0, False)
    assert terminal.run("squad", "init", "--yes", "--server", "postgres").code == 0
    written = squad_of(terminal)
    assert set(written["agentServers"]) == ROLES
    assert written["agentServers"]["backend-dev"] == ["postgres"]
    assert written["agentServers"]["designer"] == []
    before = terminal.snapshot()
    again = terminal.run("squad", "init", "--yes")
    assert (again.code, "--force replaces it" in again.err) == (5, True)
    assert terminal.snapshot() == before
    assert terminal.run("squad", "init", "--yes", "--force", "--json").json()["unset"] == ["GITHUB_TOKEN"]
    assert set(squad_of(terminal)["servers"]) == {"github", "filesystem"}
    unknown = terminal.run("squad", "init", "--yes", "--force", "--server", "postgrse")
    assert (unknown.code, "postgres" in unknown.err) == (4, True)


@pytest.mark.promise("SQUAD-INIT")
def test_init_asks_role_by_role_on_a_terminal(terminal: Terminal) -> None:
    answers = {"lead": "github, slack", "backend-dev": "postgres", "tester": "", "scribe": "-"}
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "outfitter", "squad", "init"],
            cwd=terminal.folder, env=terminal.environment, stdin=theirs, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        ) as asked:  # fmt: skip
            lines = [answers.get(role, "-") for role in
                     ("lead", "backend-dev", "frontend-dev", "tester", "designer", "scribe")]  # fmt: skip
            os.write(ours, "".join(f"{line}\n" for line in lines).encode())
            said, _ = asked.communicate(timeout=120)
        assert asked.returncode == 0, said
    finally:
        os.close(ours)
        os.close(theirs)
    assert "lead (lead) [github, filesystem]" in said
    written = squad_of(terminal)
    assert written["agentServers"] == {
        "lead": ["github", "slack"],
        "backend-dev": ["postgres"],
        "tester": ["github", "filesystem"],
    }


@pytest.mark.promise("SQUAD-CHECK")
def test_check_tells_what_is_not_set_who_is_not_of_the_team_and_who_has_nothing(terminal: Terminal) -> None:
    terminal.write(".squad/team.md", TEAM)
    github = {"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}}
    routes = {"ripley": ["github"], "backend-dev": ["github"], "riply": ["github"], "jones": list[str]()}
    terminal.write(FILE, {"servers": {"github": github}, "agentServers": routes})
    checked = terminal.run("squad", "check", "--json")
    assert checked.code == 0, checked.err
    assert checked.json()["valid"] is True
    found = {(one["check"], one["subject"]) for one in checked.json()["findings"] if one["verdict"] == "warn"}
    assert found == {("variable", "${GITHUB_TOKEN}"), ("team", "riply"), ("agent", "jones")}
    shown = terminal.run("squad", "check", GITHUB_TOKEN="secret-value")
    assert "it is not in team.md → did you mean 'ripley'?" in shown.out
    assert "GITHUB_TOKEN" not in shown.out
    assert "secret-value" not in shown.out


@pytest.mark.promise("SQUAD-CHECK")
def test_check_with_connect_finds_names_that_no_server_has_and_servers_that_do_not_answer(terminal: Terminal) -> None:
    terminal.write(
        FILE,
        {
            "servers": {"x": {**scripted(), "tools": ["*"]}, "gone": {"command": sys.executable, "args": ["-c", ""]}},
            "agentServers": {"lead": ["x", "gone"], "tester": ["x"]},
            "toolRestrictions": {
                "tester": {"x": {"exclude": ["ecko", "sle*"]}},
                "lead": {"x": {"include": ["x_echo", "add"]}},
            },
        },
    )
    assert terminal.run("squad", "check").code == 0
    checked = terminal.run("squad", "check", "--connect")
    assert checked.code == 1, checked.out
    assert "toolRestrictions/tester names 'ecko', which it does not have → did you mean 'echo'?" in checked.out
    assert "fail live gone" in checked.out
    assert "x_echo" not in checked.out, "both spellings of a squad file are one name"


@pytest.mark.promise("SQUAD-CHECK")
def test_check_of_a_file_that_is_missing_or_broken_says_where(terminal: Terminal) -> None:
    missing = terminal.run("squad", "check")
    assert (missing.code, "outfitter squad init" in missing.err) == (4, True)
    terminal.write(FILE, '{\n  "servers": {},\n  "agentServers": {"lead": "github"}\n}')
    broken = terminal.run("squad", "check", "--json")
    assert broken.code == 3
    assert "mcp-config.json:3" in broken.json()["error"]["where"]


@pytest.mark.promise("SQUAD-CHECK")
def test_a_squad_is_found_from_a_folder_inside_the_repository_and_by_dir(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run("squad", "init", "--yes")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    assert terminal.run("squad", "--dir", "src/deep", "check").code == 0
    (tmp_path / "src" / ".git").mkdir()
    assert terminal.run("squad", "--dir", "src/deep", "check").code == 4, "another repository ends the search"


@pytest.mark.promise("SQUAD-EXCLUDE-LATER")
def test_check_tells_what_waits_and_approving_it_ends_that(terminal: Terminal, tmp_path: Path) -> None:
    server = stdio_server(Script("x"))
    held = {"tester": {"x": {"exclude": ["sleep"]}}}
    file = {"servers": {"x": scripted()}, "agentServers": {"tester": ["x"]}, "toolRestrictions": held}
    terminal.write(FILE, file)
    assert server.command is not None
    first = terminal.run("--catalog", ".squad", "tools", "tester", "--json").json()
    (file,) = (tmp_path / ".local/state/outfitter/pins").rglob("*.db")
    with closing(sqlite3.connect(file)) as base, base:
        base.execute("DELETE FROM seen WHERE tool = 'echo'")  # as if the server had come to it later
    later = terminal.run("--catalog", ".squad", "tools", "tester", "--json").json()
    assert {one["shown"] for one in first} - {one["shown"] for one in later} == {"x_echo"}
    assert "appeared later" in terminal.run("--catalog", ".squad", "why-not", "tester", "x_echo").out
    assert terminal.run("--catalog", ".squad", "call", "tester", "x_echo", "text=hi").code == 4
    assert "'echo' appeared later and is hidden from agent 'tester'" in terminal.run("squad", "check").out

    wrong = terminal.run("squad", "approve-tools", "x", "echoo")
    assert (wrong.code, "did you mean 'echo'" in wrong.err) == (4, True)
    approved = terminal.run("squad", "approve-tools", "x", "--json")
    assert approved.json() == {"approved": [{"server": "x", "agent": "tester", "tool": "echo"}]}
    assert terminal.run("--catalog", ".squad", "call", "tester", "x_echo", "text=hi").code == 0
    assert "No tool of 'x' waits." in terminal.run("squad", "approve-tools", "x").out
