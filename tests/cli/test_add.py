"""One command adds a server: where it goes, who gets it, what is to be set; twice is told, and nothing is lost."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import Terminal

FILE = ".squad/mcp-config.json"
SQUAD = {
    "servers": {"mine": {"type": "local", "command": "mine", "args": ["-x"], "tools": ["*"], "timeout": 5000}},
    "agentServers": {"lead": ["mine"], "backend-dev": [], "tester": [], "designer": [], "scribe": []},
    "roles": {"lead": "lead", "tester": "tester"},
}


@pytest.fixture
def squad(terminal: Terminal) -> Terminal:
    """A folder with a squad file."""
    terminal.write(FILE, SQUAD)
    return terminal


@pytest.mark.promise("DOC5-ONE-COMMAND")
def test_a_new_server_takes_one_command(squad: Terminal) -> None:
    printed = squad.run("add", "trello")
    assert printed.code == 0, printed.err
    assert "trello: npx -y @delorenj/mcp-server-trello" in printed.out
    assert "lead gets trello: all tools" in printed.out
    assert "scribe gets trello: get_*" in printed.out
    assert f"Changed {FILE}. Nothing was started." in printed.out
    written = json.loads((squad.folder / FILE).read_text())
    assert written["servers"]["mine"] == SQUAD["servers"]["mine"]
    assert written["agentServers"] == {**SQUAD["agentServers"], "lead": ["mine", "trello"], "scribe": ["trello"]}
    assert written["roles"] == SQUAD["roles"]
    assert list(written) == ["servers", "agentServers", "roles", "toolRestrictions"]
    assert squad.run("import", FILE).code == 0
    shown = squad.run("explain", "lead", "--json").json()
    assert [server["alias"] for server in shown["servers"]] == ["mine", "trello"]


@pytest.mark.promise("SQUAD-ADD")
def test_the_variables_that_are_not_set_are_named_and_no_value_is_printed_or_stored(squad: Terminal) -> None:
    printed = squad.run("add", "trello", TRELLO_TOKEN="canary-token")
    assert "export TRELLO_API_KEY=...   # the API key of a Power-Up" in printed.out
    assert "export TRELLO_TOKEN" not in printed.out
    assert "canary-token" not in printed.out + printed.err + (squad.folder / FILE).read_text()
    told = squad.run("add", "trello", "--json", TRELLO_TOKEN="canary-token").json()
    assert [(one["name"], one["set"]) for one in told["variables"]] == [
        ("TRELLO_API_KEY", False),
        ("TRELLO_TOKEN", True),
    ]
    assert (squad.folder / FILE).read_text().count("${TRELLO_TOKEN}") == 1


@pytest.mark.promise("SQUAD-ADD")
def test_a_second_time_is_told_and_changes_nothing(squad: Terminal) -> None:
    squad.run("add", "postgres")
    before = squad.snapshot()
    printed = squad.run("add", "postgres")
    assert printed.code == 0
    assert f"'postgres' is in {FILE} already; nothing was changed." in printed.out
    told = squad.run("add", "postgres", "--json").json()
    assert (told["added"], told["routes"], told["written"]) == ([], [], [])
    assert squad.snapshot() == before


@pytest.mark.promise("SQUAD-ADD")
def test_a_different_server_of_the_name_is_a_conflict_and_nothing_is_lost(squad: Terminal) -> None:
    squad.write(FILE, {**SQUAD, "servers": {**SQUAD["servers"], "postgres-read": {"command": "mine", "tools": ["*"]}}})
    before = squad.snapshot()
    printed = squad.run("add", "postgres")
    assert printed.code == 5
    assert "there is another server 'postgres-read' already" in printed.err
    assert FILE in printed.err
    assert squad.snapshot() == before


def test_a_dry_run_says_it_all_and_writes_nothing(squad: Terminal) -> None:
    before = squad.snapshot()
    printed = squad.run("add", "postgres", "--dry-run")
    assert "postgres-read: uvx postgres-mcp --access-mode=restricted" in printed.out
    assert "backend-dev gets postgres: all tools" in printed.out
    assert f"Would change {FILE}" in printed.out
    assert squad.snapshot() == before


def test_named_agents_only_get_it(squad: Terminal) -> None:
    told = squad.run("add", "slack", "--to", "tester", "--json").json()
    assert [(route["agent"], route["server"]) for route in told["routes"]] == [("tester", "slack")]
    assert "slack_post_message" not in told["routes"][0]["tools"]
    assert squad.run("add", "slack", "--to", "nobody").code == 4


def test_comments_that_are_lost_are_told(squad: Terminal) -> None:
    (squad.folder / FILE).write_text('// ours\n{"servers": {}, "agentServers": {"lead": [],}}')
    printed = squad.run("add", "linear")
    assert "note: the comments and trailing commas of the file are not kept" in printed.out
    assert list(json.loads((squad.folder / FILE).read_text())["servers"]) == ["linear"]


def test_an_agent_that_the_file_does_not_hold_to_its_role_is_told(squad: Terminal) -> None:
    printed = squad.run("add", "filesystem")
    assert (
        """note: agent 'scribe' is held to its list of tools; "roles": {"scribe": "scribe"} in the file"""
        in printed.out
    )
    assert "agent 'tester' is held" not in printed.out


def test_from_a_folder_below_the_file_of_the_repository_is_meant(squad: Terminal) -> None:
    (squad.folder / "src").mkdir()
    below = Terminal(squad.folder / "src", squad.environment)
    assert below.run("add", "linear").code == 0
    assert "linear" in json.loads((squad.folder / FILE).read_text())["servers"]


@pytest.mark.promise("SQUAD-ADD")
def test_without_a_squad_file_it_goes_into_the_catalog(terminal: Terminal) -> None:
    terminal.write("outfitter/agents/quality.yaml", "role: tester\nsystem_prompt: Test.\n")
    printed = terminal.run("add", "filesystem", "--json").json()
    assert sorted(printed["written"]) == ["outfitter/agents/quality.yaml", "outfitter/mcp-servers/filesystem.json"]
    shown = terminal.run("explain", "quality", "--json").json()
    assert "tester: writes only under tests/**" in json.dumps(shown["servers"][0]["rules"])
    assert terminal.run("validate").code == 0
    before = terminal.snapshot()
    assert "nothing was changed" in terminal.run("add", "filesystem").out
    assert terminal.snapshot() == before


def test_a_named_catalog_is_meant_although_there_is_a_squad_file(squad: Terminal) -> None:
    before = (squad.folder / FILE).read_bytes()
    assert squad.run("--catalog", "team", "add", "github").code == 0
    assert (squad.folder / "team/mcp-servers/github.json").is_file()
    assert (squad.folder / FILE).read_bytes() == before


def test_everything_that_can_be_added_is_listed(terminal: Terminal) -> None:
    printed = terminal.run("add", "--list")
    for name in ("trello", "azure-devops", "linear", "postgres", "mongodb", "slack", "discord", "notion", "confluence"):
        assert name in printed.out
    listed = terminal.run("add", "--list", "--json").json()
    assert {"name": "postgres", "group": "B: database"}.items() <= next(
        o for o in listed if o["name"] == "postgres"
    ).items()


def test_what_is_missing_or_unknown_is_told(terminal: Terminal) -> None:
    assert terminal.run("add").code == 2
    printed = terminal.run("add", "trelo")
    assert printed.code == 4
    assert "did you mean 'trello'?" in printed.err
    assert "Examples:" in terminal.run("add", "--help").out
