"""Every action of the API has a command, and a command does the same here and at a service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from outfitter.coordinator import ROUTES
from tests.cli.registry_kit import Shell, asked_of, local_shell, record_calls, served_shell, settled
from tests.cli.terminal import Printed

CONTEXT_STORE = {
    "id": "context-store",
    "url": "http://localhost:9501/mcp",
    "header_schema": {"X-Context-Namespace": {"type": "string", "required": True}},
    "default_headers": {"X-Context-Namespace": "default"},
}
CLAUDE = {
    "mcpServers": {
        "code": {"type": "http", "url": "https://code.example/mcp", "headers": {"X-Api-Key": "k" * 32}},
        "listing": {"command": "ls", "args": ["-l"]},
    }
}
# Every line is one command; NAME:FIELD stands for a field of what an earlier command with that label answered.
STORY = """
servers add -f context-store.json
servers add context-store --url http://localhost:9501/mcp
servers add files --command cat --arg -u
servers list
servers list --json --text context
servers show files
servers show context-store --record --json
servers approve files --yes
servers approve context-store --yes
servers edit context-store --set /description=Documents
servers edit context-store --set /no_such_field=1
servers history context-store
servers history context-store --diff
servers rollback context-store 1
servers rollback context-store 99
servers add gone --url http://localhost:1/mcp
servers probe gone
servers probe nobody
servers import claude.json --dry-run
servers import claude.json --only code --json
servers import claude.json --only nobody
servers import claude.json
servers rm gone --yes
capabilities add knowledge --use docs=context-store --text Ask
capabilities list
capabilities show knowledge --json
capabilities edit knowledge --set /text=Look
capabilities history knowledge --json
capabilities rollback knowledge 1
capabilities users knowledge
agents add lead --capability knowledge --role lead
agents add worker -f worker.yaml
agents list
agents show lead
agents show lead --resolved --json
agents edit lead --set /role=boss --json
agents history lead
agents rollback lead 1
agents add builder -f builder.json
agents approve builder --yes
agents approve lead --yes
agents rm builder --yes
agents resolve lead
agents resolve lead --explain --json
servers users context-store --json
agents users lead --json
servers rm context-store --yes
servers rm context-store --yes --json
resolve lead --change mcp-servers/context-store=moved.json
resolve lead --delete mcp-servers/context-store
resolve lead --json
RUN runs start lead --prompt Go --header docs:X-Context-Namespace=mine --json
runs start nobody --prompt Go
runs list --json
runs list --agent nobody
runs show RUN:id
runs events RUN:id
runs events RUN:id --json
runners
runners --json
CHILD runs start worker --prompt Help --parent RUN:session_id --json
sessions list
sessions show RUN:session_id
sessions show CHILD:session_id --json
sessions show RUN:session_id --plan
runs tree RUN:id
runs tree RUN:id --json
runs stop RUN:id
runs stop RUN:id
runs show run-none
TOKEN tokens issue viewer --label ci --days 30 --json
tokens issue agent --label x
tokens list
tokens revoke TOKEN:id
tokens revoke none
approvals list
approvals show none
approvals approve none
approvals deny none --json
pins list
pins list x --state pending --json
pins diff x --id none
pins approve x --id none
pins reject x --id none --json
audit calls --agent a --json
audit calls --outcome denied --limit 2
audit changes
audit changes --entry agents/lead --json
events --after 0 --no-follow
api /health
api /ready
api /metrics
api /openapi.json
agents add metered -f metered.json
budgets
budgets metered --reset repeats
budgets nobody
agents rm metered --yes
api /overview
api /find?q=context
api /call-figures?since=1&until=100&pieces=1
api /agents/lead/tool-tokens
api /v0.1/servers
api /v0.1/servers/local.outfitter%2Fcontext-store/versions
api /v0.1/servers/local.outfitter%2Fcontext-store/versions/latest
agents rm worker --yes
agents rm lead --yes
capabilities rm knowledge --yes
servers rm context-store --yes
servers list
"""


def _prepared(shell: Shell, state: Path) -> Shell:
    shell.write("context-store.json", CONTEXT_STORE)
    shell.write("claude.json", CLAUDE)
    shell.write("moved.json", {**CONTEXT_STORE, "url": "http://localhost:9999/mcp"})
    shell.write("worker.yaml", "description: Helps\nmcpServers:\n  docs: {ref: context-store}\n")
    shell.write("metered.json", {"name": "metered", "budgets": {"repeats": 3}})
    shell.write("builder.json", {"name": "builder", "executor": {"type": "command", "command": "make"}})
    record_calls(state, 9)
    return shell


def _told(shell: Shell) -> Iterator[tuple[str, Printed]]:
    """The story at one place: each command with what it printed."""
    answers: dict[str, dict[str, str]] = {}
    for line in STORY.strip().splitlines():
        label, *words = line.split() if line[0].isupper() else ("", *line.split())
        filled = [_fill(word, answers) for word in words]
        printed = shell.run(*filled)
        if label:
            assert printed.code == 0, (line, printed)
            answers[label] = printed.json()
        yield line, printed


def _fill(word: str, answers: dict[str, dict[str, str]]) -> str:
    label, _, name = word.partition(":")
    return answers[label][name] if label in answers else word


def _settled(line: str, printed: Printed) -> tuple[str, int, str, str]:
    return line, printed.code, settled(printed.out), settled(printed.err)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Printed]]:
    """The story on a registry of this machine."""
    shell = local_shell(tmp_path_factory.mktemp("here"))
    return list(_told(_prepared(shell, shell.state)))


@pytest.mark.promise("CLI-API")
def test_every_action_has_a_command_that_does_the_same_here_and_at_a_service(
    story: list[tuple[str, Printed]], tmp_path: Path
) -> None:
    local = [_settled(*step) for step in story]
    with served_shell(tmp_path) as there:
        remote = [_settled(*step) for step in _told(_prepared(there, there.folder / "served"))]
        asked = {_shape(line) for line in asked_of(there)}
    for mine, theirs in zip(local, remote, strict=True):
        assert mine == theirs
    # What runners say while they execute runs is said by `outfitter runner`, and by nobody else.
    wanted = {f"{route.method} {_nameless(route.path)}" for route in ROUTES if route.action != "runs.execute"}
    assert wanted - asked == set()
    assert {code for _, code, _, _ in local} == {0, 1, 3, 4, 5}


def _shape(line: str) -> str:
    """A request with the names in its path left out."""
    method, path = line.split(" ")
    parts = path.removeprefix("/api/v1/").replace("local.outfitter/", "").split("/")
    if parts[0] == "v0.1":
        return f"{method} /{'/'.join('{}' if place in {2, 4} else part for place, part in enumerate(parts))}"
    return f"{method} /{'/'.join([parts[0], *('{}' for _ in parts[1:2]), *parts[2:]])}"


def _nameless(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


def test_what_commands_say_of_the_story(story: list[tuple[str, Printed]]) -> None:
    told = dict(story)
    assert told["servers add -f context-store.json"].out == "Added server 'context-store', version 1.\n"
    assert told["servers add context-store --url http://localhost:9501/mcp"].code == 5
    assert "command: cat" in told["servers show files"].out
    assert told["servers approve files --yes"].out == "The command of server 'files' is approved.\n"
    assert told["servers edit context-store --set /no_such_field=1"].err.startswith("Error [invalid_document]")
    assert told["servers probe gone"].code == 1
    assert "listing (new): ls -l" in told["servers import claude.json --dry-run"].out
    assert told["servers import claude.json"].out.endswith("Brought in 1 of 2 servers. Nothing was started.\n")
    assert "k" * 32 not in str(told)
    assert "+description: Documents" in told["servers history context-store --diff"].out
    assert told["servers users context-store --json"].json() == [
        {"kind": "agents", "id": "worker"},
        {"kind": "capabilities", "id": "knowledge"},
    ]
    refused = told["servers rm context-store --yes --json"]
    assert {user["id"] for user in refused.json()["error"]["users"]} == {"knowledge", "worker"}
    tried = told["resolve lead --change mcp-servers/context-store=moved.json"]
    assert (tried.code, "http://localhost:9999/mcp" in tried.out) == (0, True)
    assert told["resolve lead --delete mcp-servers/context-store"].code == 1
    tree = told["sessions show RUN:session_id"].out.splitlines()
    assert ["lead" in tree[0], "worker" in tree[1]] == [True, True]
    calls = [json.loads(line) for line in told["audit calls --agent a --json"].out.splitlines()]
    assert [call["call_id"] for call in calls] == ["c0", "c2", "c4", "c6", "c8"]
    assert len(told["audit calls --outcome denied --limit 2"].out.splitlines()) == 2
    changes = [json.loads(line)["action"] for line in told["audit changes --entry agents/lead --json"].out.splitlines()]
    assert changes == ["create", "update", "rollback"]


GROUPS = ["servers", "capabilities", "agents", "runs", "sessions", "tokens", "audit", "approvals"]


@pytest.mark.parametrize("group", GROUPS)
def test_every_command_of_a_group_has_examples_and_can_print_json_and_ask_a_service(tmp_path: Path, group: str) -> None:
    shell = Shell(tmp_path)
    listed = shell.done(group, "--help").partition("Commands:\n")[2]
    names = [line.split()[0] for line in listed.splitlines() if line[:3].strip()]
    assert names
    for name in names:
        told = shell.done(group, name, "--help")
        assert f"outfitter {group} {name}" in told.partition("Examples:")[2], (group, name)
        assert ("--json" in told, "--server URL" in told) == (True, True)


def test_the_help_sorts_every_command_into_a_section(tmp_path: Path) -> None:
    told = Shell(tmp_path).done("--help")
    assert "The team's registry:" in told
    assert all(f"\n  {name} " in told for name in (*GROUPS, "resolve", "events", "api"))
