"""The other commands, and what is the same for all of them: help, JSON, exit codes, completion."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.terminal import Terminal

COMMANDS = [
    "init", "demo", "validate", "servers", "capabilities", "agents", "explain", "why-not", "import", "export",
    "migrate", "doctor", "completion", "connect", "tools", "call", "approve",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(terminal: Terminal, command: str) -> None:
    printed = terminal.run(command, "--help")
    assert printed.code == 0
    assert "Usage: outfitter" in printed.out


def test_help_loads_no_framework_and_no_room_it_does_not_need() -> None:
    code = "import sys; sys.argv = ['outfitter', '--help']\nfrom outfitter.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += (
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'rich', 'yaml', 'tomlkit', 'asyncio', 'keyring'}))"
    )
    code += "\nprint('outfitter.resolution' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["[]", "False"]


def test_commands_that_do_not_connect_load_no_loop_and_no_http_client() -> None:
    code = "import sys\nfor name in ('setup', 'inspect', 'explain', 'exchange', 'doctor'):\n"
    code += "    __import__(f'outfitter.cli.{name}')\n"
    code += "print(sorted(set(sys.modules) & {'aiohttp', 'anyio', 'asyncio', 'msgspec', 'hvac', 'keyring'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_misspelt_command_is_suggested(terminal: Terminal) -> None:
    printed = terminal.run("explian", "x")
    assert printed.code == 2
    assert "did you mean 'explain'?" in printed.err


@pytest.mark.promise("CLI-DEMO")
def test_demo_writes_its_catalog_once_and_explains_every_agent(terminal: Terminal) -> None:
    first = terminal.run("demo")
    assert first.code == 0, first.err
    assert "Wrote the demo catalog to outfitter/" in first.out
    terminal.write("outfitter/agents/mine.json", {"name": "mine"})
    before = terminal.snapshot()
    second = terminal.run("demo", "--json").json()
    assert second["created"] is False
    assert {"sprint-researcher", "alpha-project-assistant", "global-analyst", "scribe", "mine"} <= {
        agent["agent"] for agent in second["agents"]
    }
    assert terminal.snapshot() == before


def test_init_leaves_a_catalog_that_exists_alone(demo: Terminal) -> None:
    before = demo.snapshot()
    printed = demo.run("init")
    assert "nothing was changed" in printed.out
    assert demo.snapshot() == before


def test_no_catalog_is_said_with_what_to_do(terminal: Terminal) -> None:
    printed = terminal.run("validate")
    assert printed.code == 4
    assert "run 'outfitter init'" in printed.err


def test_another_folder_can_be_named_by_option_and_by_variable(terminal: Terminal) -> None:
    assert terminal.run("--catalog", "team", "init", "--demo").code == 0
    assert terminal.run("validate", OUTFITTER_CATALOG="team").code == 0
    assert terminal.run("validate").code == 4


@pytest.mark.promise("CLI-VALIDATE")
def test_validate_reports_every_problem_and_exits_with_one(demo: Terminal) -> None:
    demo.write("outfitter/agents/stale.json", {"mcpServers": {"x": {"ref": "context-stor"}}, "capabilities": ["none"]})
    demo.write("outfitter/agents/old.json", {"mcpServers": {"x": {"type": "http", "url": "http://localhost:1/mcp"}}})
    printed = demo.run("validate", "--json")
    said = printed.json()
    assert printed.code == 1
    assert {problem["code"] for problem in said["problems"]} == {"missing_ref", "unknown_capability"}
    assert any("did you mean 'context-store'" in problem["hint"] for problem in said["problems"])
    assert [notice["code"] for notice in said["notices"]] == ["inline_server"]
    assert "outfitter/agents/old.json" in said["notices"][0]["where"]


def test_a_bad_file_is_named_with_line_and_pointer(demo: Terminal) -> None:
    demo.write("outfitter/agents/bad.json", '{\n  "name": "bad",\n  "mcpServers": {"a": {"reff": "neo4j"}}\n}')
    printed = demo.run("validate")
    assert printed.code == 3
    assert (
        "outfitter/agents/bad.json:3 at /mcpServers/a/reff: unknown field 'reff' (did you mean 'ref'?)" in printed.err
    )


@pytest.mark.parametrize("kind", ["servers", "capabilities", "agents"])
def test_lists_are_tables_and_json(demo: Terminal, kind: str) -> None:
    rows = demo.run(kind, "list", "--json").json()
    text = demo.run(kind, "list").out
    assert rows
    assert all(row.get("id", row.get("name")) in text for row in rows)


def test_show_masks_literal_secrets(demo: Terminal) -> None:
    entry = {"url": "http://localhost:1/mcp", "default_headers": {"X-API-Key": "CNRY-1"}}
    demo.write("outfitter/mcp-servers/s.json", entry)
    demo.write("outfitter/agents/a.json", {"mcpServers": {"s": {"ref": "s", "headers": {"X-API-Key": "CNRY-2"}}}})
    for args in (
        ("servers", "show", "s"),
        ("agents", "show", "a"),
        ("agents", "show", "a", "--resolved"),
        ("explain", "a"),
    ):
        for flags in ((), ("--json",)):
            printed = demo.run(*args, *flags)
            assert printed.code == 0
            assert "CNRY" not in printed.out + printed.err
    assert "used_by" in demo.run("servers", "show", "s").out


def test_show_resolved_is_the_blueprint(demo: Terminal) -> None:
    shown = demo.run("agents", "show", "alpha-project-assistant", "--resolved", "--json").json()
    assert shown["mcp_servers"]["jira"] == {
        "type": "http",
        "url": "http://localhost:9000/mcp",
        "headers": {"X-API-Key": "${ATLASSIAN_API_KEY}", "X-Jira-Projects": "ALPHA,ALPHA-OPS"},
    }


@pytest.mark.promise("CLI-DOCTOR")
@pytest.mark.promise("P15")
def test_doctor_finds_what_is_missing_and_shows_no_value(demo: Terminal) -> None:
    printed = demo.run("doctor", "--json", GITHUB_TOKEN="CNRY-3", DATABASE_URL="CNRY-4")
    findings = {(f["check"], f["subject"]): f for f in printed.json()}
    assert printed.code == 1
    assert findings["variable", "${GITHUB_TOKEN}"]["verdict"] == "ok"
    assert findings["variable", "${ATLASSIAN_API_KEY}"]["verdict"] == "fail"
    assert findings["secret", "env:DEPLOY_TOKEN"]["verdict"] == "fail"
    assert findings["package", "filesystem"]["verdict"] == "warn"
    assert "CNRY" not in printed.out + printed.err


def test_doctor_fails_on_a_secret_in_args_and_a_missing_command(demo: Terminal) -> None:
    demo.write("outfitter/mcp-servers/s.json", {"command": "no-such-program", "args": ["--token", "${MY_TOKEN}"]})
    findings = demo.run("doctor", "--json").json()
    assert any(f["check"] == "command" and f["subject"] == "s" and f["verdict"] == "fail" for f in findings)
    assert any(f["check"] == "secret" and "process listings" in f["message"] for f in findings)


def test_doctor_is_content_when_everything_is_there(terminal: Terminal) -> None:
    terminal.write(
        "outfitter/mcp-servers/s.json", {"url": "http://localhost:1/mcp", "default_headers": {"X-K": "${K}"}}
    )
    terminal.write("outfitter/agents/a.json", {"mcpServers": {"s": {"ref": "s"}}})
    printed = terminal.run("doctor", "--all", K="v")
    assert printed.code == 0, printed.out
    assert "0 warnings, 0 failures" in printed.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(terminal: Terminal, shell: str) -> None:
    printed = terminal.run("completion", shell)
    assert "_OUTFITTER_COMPLETE" in printed.out


def test_completion_knows_the_agents_of_the_catalog(demo: Terminal) -> None:
    asked = {"_OUTFITTER_COMPLETE": "bash_complete", "COMP_WORDS": "outfitter explain te", "COMP_CWORD": "2"}
    printed = demo.run(**asked)
    assert {"plain,tester", "plain,team-alpha-analyst"} <= set(printed.out.split())


def test_an_error_under_json_is_json(demo: Terminal) -> None:
    printed = demo.run("agents", "show", "nobody", "--json")
    assert json.loads(printed.out)["error"]["code"] == "unknown_agent"


def test_control_characters_in_a_description_are_shown_and_not_obeyed(demo: Terminal) -> None:
    demo.write("outfitter/agents/evil.json", {"description": "\u001b[2Jgone\u202e"})
    printed = demo.run("agents", "list")
    assert "\u001b" not in printed.out
    assert "\\x1b[2Jgone\\u202e" in printed.out
