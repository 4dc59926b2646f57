"""Patterns A to D: what each adds, who gets it, and that nothing which is there is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from outfitter.catalog import Agent, Catalog, JsonValue, MCPServer, ServerEntry, ServerRef, ToolFilter
from outfitter.errors import AlreadyExists, NotFound, UnknownAgent
from outfitter.formats import Syntax, parse_text, read_squad, render_text
from outfitter.policy import Allow, Deny
from outfitter.resolution import Variable, resolve, server_wants
from outfitter.squad import PRESETS, Pattern, add_to_catalog, add_to_squad, apply_presets, find_pattern, patterns

PATTERNS = patterns()
WANTED = {"trello", "azure-devops", "linear", "postgres", "mongodb", "slack", "discord", "notion", "confluence",
          "github", "filesystem"}  # fmt: skip
ROLES = [preset.role for preset in PRESETS]


def squad(*agents: str, **more: JsonValue) -> dict[str, Any]:
    return {"servers": {}, "agentServers": {name: [] for name in agents or ROLES}, **more}


def routed(pattern: str, *to: str) -> dict[str, dict[str, list[str] | None]]:
    """Who gets which tools of which server in a squad of every role; None is all of them."""
    document, _ = add_to_squad(squad(), find_pattern(pattern), to)
    found: dict[str, dict[str, list[str] | None]] = {}
    limits: Any = document.get("toolRestrictions", {})
    routes: Any = document["agentServers"]
    for agent, servers in routes.items():
        for server in servers:
            limit = limits.get(agent, {}).get(server)
            found.setdefault(agent, {})[server] = None if limit is None else limit["include"]
    return found


def test_every_server_of_the_document_can_be_added() -> None:
    assert set(PATTERNS) >= WANTED


@pytest.mark.promise("SQUAD-PATTERNS")
@pytest.mark.parametrize("name", ["trello", "azure-devops", "linear", "jira"])
def test_project_management_goes_to_the_lead_and_to_the_scribe_for_reading(name: str) -> None:
    found = routed(name)
    assert set(found) == {"lead", "scribe"}
    assert found["lead"] == {name: None}
    reads = ToolFilter(tuple(found["scribe"][name] or ()))
    for tool in ("create_card", "save_issue", "wit_create_work_item", "jira_create_issue", "repo_create_branch"):
        assert not reads.allows(tool)


@pytest.mark.promise("SQUAD-PATTERNS")
@pytest.mark.parametrize(("name", "mode"), [("postgres", "--access-mode=restricted"), ("mongodb", "--readOnly")])
def test_a_database_goes_to_the_backend_and_to_readers_as_a_server_that_cannot_write(name: str, mode: str) -> None:
    found = routed(name)
    assert {agent: list(servers) for agent, servers in found.items()} == {
        "backend-dev": [name],
        "lead": [f"{name}-read"],
        "tester": [f"{name}-read"],
    }
    full, reading = PATTERNS[name].servers
    assert mode in reading.server.args
    assert mode not in full.server.args
    assert reading.server.env == full.server.env


@pytest.mark.promise("SQUAD-PATTERNS")
@pytest.mark.parametrize("name", ["slack", "discord"])
def test_communication_goes_to_the_lead_and_the_scribe_only(name: str) -> None:
    assert routed(name) == {"lead": {name: None}, "scribe": {name: None}}


@pytest.mark.promise("SQUAD-PATTERNS")
@pytest.mark.parametrize("name", ["notion", "confluence"])
def test_documentation_goes_to_the_scribe_and_to_everybody_for_reading(name: str) -> None:
    found = routed(name)
    assert set(found) == set(ROLES)
    assert found.pop("scribe") == {name: None}
    for given in found.values():
        reads = ToolFilter(tuple(given[name] or ()))
        assert not reads.allows("API-post-page")
        assert not reads.allows("confluence_create_page")


@pytest.mark.promise("SQUAD-PATTERNS")
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=lambda pattern: pattern.name)
def test_the_variables_of_a_pattern_are_named_and_no_value_is_written(pattern: Pattern) -> None:
    document, _ = add_to_squad(squad(), pattern)
    agent = Agent("a", servers={entry.id: ServerRef(entry.id) for entry in pattern.servers})
    plan = resolve("a", Catalog.of(pattern.servers, [], [agent]))
    needs = [want.need for server in plan.servers.values() for want in server_wants(server)]
    wanted = {need.name for need in needs if isinstance(need, Variable) and need.default is None}
    assert wanted == set(pattern.variables)
    servers: Any = document["servers"]
    for server in servers.values():
        for value in (*server.get("env", {}).values(), *server.get("headers", {}).values()):
            assert "${" in value


@pytest.mark.promise("SQUAD-ADD")
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=lambda pattern: pattern.name)
def test_adding_twice_changes_nothing_in_a_squad_file_or_a_catalog(pattern: Pattern) -> None:
    once, added = add_to_squad(squad(), pattern)
    assert added.servers == tuple(entry.id for entry in pattern.servers)
    again = parse_text(render_text(once, Syntax.JSON), source="", syntax=Syntax.JSON)
    twice, nothing = add_to_squad(again, pattern)
    assert twice == once
    assert nothing.is_nothing
    assert nothing.notes == ()
    agents = [Agent(role, role=role) for role in ROLES]
    catalog, _ = add_to_catalog(Catalog.of([], [], agents), pattern)
    same, nothing = add_to_catalog(catalog, pattern)
    assert same == catalog
    assert nothing.is_nothing
    assert nothing.notes == ()


@pytest.mark.promise("SQUAD-ADD")
def test_all_patterns_together_stand_in_one_file_and_under_the_presets() -> None:
    document = squad()
    for pattern in PATTERNS.values():
        document, _ = add_to_squad(document, pattern)
    catalog = apply_presets(read_squad(document, "squad.json"))
    for agent in catalog.agents:
        resolve(agent, catalog)
    tester = resolve("tester", catalog).servers
    assert isinstance(tester["filesystem"].decide("write_file", {"path": "src/a"}), Deny)
    assert isinstance(tester["postgres-read"].decide("execute_sql", {"sql": "SELECT 1"}), Allow)
    assert isinstance(tester["postgres-read"].decide("execute_sql", {"sql": "DROP TABLE a"}), Deny)
    assert isinstance(tester["mongodb-read"].decide("find", {}), Allow)
    assert isinstance(tester["mongodb-read"].decide("drop-database", {}), Deny)
    assert isinstance(tester["github"].decide("merge_pull_request", {}), Deny)


@pytest.mark.promise("SQUAD-ADD")
def test_another_server_of_the_name_is_a_conflict_and_nothing_is_lost() -> None:
    document = squad(servers={"slack": {"type": "http", "url": "${SLACK_MCP_URL}", "tools": ["send_message"]}})
    before = json.dumps(document)
    with pytest.raises(AlreadyExists, match="there is another server 'slack' already"):
        add_to_squad(document, find_pattern("slack"))
    assert json.dumps(document) == before
    other = Catalog.of([ServerEntry(MCPServer.stdio("slack", "mine"))])
    with pytest.raises(AlreadyExists):
        add_to_catalog(other, find_pattern("slack"))


@pytest.mark.promise("SQUAD-ADD")
def test_what_an_agent_has_of_the_server_stays_and_keys_keep_their_order() -> None:
    first, _ = add_to_squad(squad("lead"), find_pattern("notion"))
    document: dict[str, JsonValue] = {"roles": {"writer": "scribe"}, "$schema": "x", **first}
    document["toolRestrictions"] = {"lead": {"notion": {"exclude": ["API-delete-a-block"]}}}
    document["agentServers"] = {"lead": ["notion"], "writer": []}
    changed, added = add_to_squad(document, find_pattern("notion"))
    assert list(changed) == list(document)
    assert changed["toolRestrictions"] == {"lead": {"notion": {"exclude": ["API-delete-a-block"]}}}
    assert added.notes == ("agent 'lead' has 'notion' already, with other tools: left as it is",)
    assert [(agent, share.tools.is_open) for agent, share in added.routes] == [("writer", True)]


@pytest.mark.promise("SQUAD-ADD")
def test_named_agents_get_it_and_those_whose_role_has_no_share_get_what_reads() -> None:
    assert routed("trello", "scribe", "tester") == {
        "scribe": {"trello": ["get_*", "list_*", "find_*", "search_*"]},
        "tester": {"trello": ["get_*", "list_*", "find_*", "search_*"]},
    }
    assert routed("postgres", "backend-dev") == {"backend-dev": {"postgres": None}}
    _, added = add_to_squad(squad(), find_pattern("postgres"), ["designer"])
    assert [(agent, share.server) for agent, share in added.routes] == [("designer", "postgres-read")]
    assert added.notes == ("agent 'designer': role 'designer' gets no tools of a database server",)


def test_a_server_that_everybody_shares_is_not_given_twice() -> None:
    entry = find_pattern("filesystem").servers[0]
    document, _ = add_to_squad(squad("lead"), find_pattern("filesystem"))
    shared = squad("lead", "tester", servers=document["servers"], sessionServers=[entry.id])
    _, added = add_to_squad(shared, find_pattern("filesystem"))
    assert added.is_nothing


def test_a_role_of_the_catalog_gets_the_rules_of_its_preset_too() -> None:
    agents = [Agent("quality", role="tester"), Agent("odd", role="odd")]
    catalog, _ = add_to_catalog(Catalog.of([], [], agents), find_pattern("filesystem"))
    server = resolve("quality", catalog).servers["filesystem"]
    assert isinstance(server.decide("write_file", {"path": "tests/a"}), Allow)
    assert isinstance(server.decide("write_file", {"path": "src/a"}), Deny)
    assert isinstance(resolve("odd", catalog).servers["filesystem"].decide("write_file", {"path": "a"}), Deny)


def test_unknown_names_are_told_with_a_suggestion() -> None:
    with pytest.raises(NotFound, match="did you mean 'slack'"):
        find_pattern("slak")
    with pytest.raises(UnknownAgent, match="did you mean 'tester'"):
        add_to_squad(squad(), find_pattern("slack"), ["testr"])


def test_without_an_agent_that_gets_it_the_server_is_written_and_the_way_on_is_told() -> None:
    document, added = add_to_squad(squad("odd"), find_pattern("slack"))
    assert document["agentServers"] == {"odd": []}
    assert added.notes == ("no agent here has a role that gets it: name agents with --to",)
