"""Document 5's squad file: the printed config, its restrictions, the shared servers and the patterns A to D."""

from __future__ import annotations

import json
from typing import Any

import pytest

from outfitter.catalog import Agent, Capability, Catalog, JsonValue, ServerRef
from outfitter.errors import OutfitterError
from outfitter.formats import Syntax, read_document, read_squad, read_squad_file, write_squad
from outfitter.resolution import ArmedStdio, arm, resolve, why_not
from tests.shelf import sent_headers, supply_of

CONFIG = """{
  "servers": {
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": { "Authorization": "Bearer ${GITHUB_TOKEN}" },
      "tools": ["*"]
    },
    "filesystem": {
      "type": "local",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "${WORKSPACE_ROOT}"],
      "tools": ["*"]
    },
    "postgres": {
      "type": "local",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-postgres"],
      "env": { "DATABASE_URL": "${DATABASE_URL}" },
      "tools": ["query", "list_tables", "describe_table"]
    },
    "slack": {
      "type": "http",
      "url": "${SLACK_MCP_URL}",
      "headers": { "Authorization": "Bearer ${SLACK_BOT_TOKEN}" },
      "tools": ["send_message", "list_channels"]
    }
  },
  "agentServers": {
    "lead": ["github", "filesystem"],
    "backend-dev": ["github", "filesystem", "postgres"],
    "frontend-dev": ["github", "filesystem"],
    "tester": ["github", "filesystem"],
    "designer": ["github", "filesystem", "slack"],
    "scribe": ["filesystem"]
  },
  "toolRestrictions": {
    "tester": {
      "github": { "exclude": ["create_pull_request", "merge_pull_request"] },
      "filesystem": { "exclude": ["delete_file"] }
    },
    "scribe": {
      "filesystem": { "include": ["read_file", "write_file", "list_directory"] }
    }
  }
}"""
VARIABLES = {
    "GITHUB_TOKEN": "gh-1",
    "WORKSPACE_ROOT": "/srv/project",
    "DATABASE_URL": "postgres://db",
    "SLACK_MCP_URL": "https://slack.example/mcp",
    "SLACK_BOT_TOKEN": "sl-1",
}


def squad(text: str = CONFIG) -> Catalog:
    return read_document(text, "squad.json", Syntax.JSON, lambda value: read_squad(value, "squad.json"))


def changed(**parts: JsonValue) -> str:
    return json.dumps(json.loads(CONFIG) | parts)


@pytest.mark.promise("DOC5-CONFIG")
@pytest.mark.parametrize(
    ("agent", "servers"),
    [
        ("lead", ["github", "filesystem"]),
        ("backend-dev", ["github", "filesystem", "postgres"]),
        ("frontend-dev", ["github", "filesystem"]),
        ("tester", ["github", "filesystem"]),
        ("designer", ["github", "filesystem", "slack"]),
        ("scribe", ["filesystem"]),
    ],
)
def test_each_agent_gets_the_servers_of_the_printed_config(agent: str, servers: list[str]) -> None:
    plan = resolve(agent, squad())
    assert list(plan.servers) == servers
    assert plan.agent.role == agent
    assert plan.notices == ()


@pytest.mark.promise("DOC5-CONFIG")
def test_headers_arguments_environment_and_urls_are_filled_from_variables() -> None:
    supply = supply_of(VARIABLES)
    designer = resolve("designer", squad())
    assert sent_headers(designer, "github", supply) == {"Authorization": "Bearer gh-1"}
    assert sent_headers(designer, "slack", supply) == {"Authorization": "Bearer sl-1"}
    armed = arm(resolve("backend-dev", squad()), supply)
    files, postgres = armed.servers["filesystem"].transport, armed.servers["postgres"].transport
    assert isinstance(files, ArmedStdio)
    assert isinstance(postgres, ArmedStdio)
    assert [files.command.reveal(), *(arg.reveal() for arg in files.args)] == [
        "npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/project",
    ]  # fmt: skip
    assert {name: value.reveal() for name, value in postgres.env.items()} == {"DATABASE_URL": "postgres://db"}


@pytest.mark.promise("DOC5-CONFIG")
def test_the_tools_of_a_server_are_those_its_list_names() -> None:
    postgres = resolve("backend-dev", squad()).servers["postgres"]
    assert [t for t in ("query", "list_tables", "describe_table", "execute") if postgres.allows(t)] == [
        "query", "list_tables", "describe_table",
    ]  # fmt: skip
    assert resolve("lead", squad()).servers["github"].allows("anything")


@pytest.mark.promise("DOC5-RESTRICTIONS")
@pytest.mark.parametrize(
    ("agent", "server", "tool", "is_allowed"),
    [
        ("tester", "github", "create_pull_request", False),
        ("tester", "github", "merge_pull_request", False),
        ("tester", "github", "list_issues", True),
        ("tester", "filesystem", "delete_file", False),
        ("tester", "filesystem", "write_file", True),
        ("scribe", "filesystem", "read_file", True),
        ("scribe", "filesystem", "write_file", True),
        ("scribe", "filesystem", "list_directory", True),
        ("scribe", "filesystem", "delete_file", False),
        ("lead", "github", "merge_pull_request", True),
        ("lead", "filesystem", "delete_file", True),
    ],
)
def test_restrictions_hold_for_the_agent_they_name(agent: str, server: str, tool: str, *, is_allowed: bool) -> None:
    plan = resolve(agent, squad())
    assert plan.servers[server].allows(tool) is is_allowed
    (answer,) = why_not(plan, f"{server}/{tool}")
    assert answer.has_it is is_allowed
    assert is_allowed or f"agent '{agent}'" in answer.reason


@pytest.mark.promise("DOC5-RESTRICTIONS")
def test_restrictions_may_be_written_with_the_servers_prefix() -> None:
    restrictions: JsonValue = {"tester": {"github": {"exclude": ["github_create_pull_request"]}}}
    github = resolve("tester", squad(changed(toolRestrictions=restrictions))).servers["github"]
    assert (github.allows("create_pull_request"), github.allows("list_issues")) == (False, True)


@pytest.mark.promise("DOC5-RESTRICTIONS", "FILTER-NARROWS")
def test_a_restriction_cannot_open_what_the_server_leaves_out() -> None:
    restrictions: JsonValue = {"backend-dev": {"postgres": {"include": ["query", "execute"]}}}
    postgres = resolve("backend-dev", squad(changed(toolRestrictions=restrictions))).servers["postgres"]
    assert [tool for tool in ("query", "execute", "list_tables") if postgres.allows(tool)] == ["query"]


@pytest.mark.promise("DOC5-RESTRICTIONS")
def test_an_exclude_list_becomes_an_include_list_of_the_real_tools() -> None:
    tools = squad().agents["tester"].servers["github"]
    real = ("list_issues", "create_pull_request", "get_file")
    assert getattr(tools, "tools").select(real) == ("list_issues", "get_file")  # noqa: B009 (a ref has a filter)


@pytest.mark.promise("DOC5-SESSION")
def test_servers_shared_by_the_session_reach_every_agent() -> None:
    restrictions: JsonValue = {"scribe": {"filesystem": ["read_file"]}}
    routes: JsonValue = {"lead": ["github"], "scribe": []}
    catalog = squad(changed(sessionServers=["filesystem"], agentServers=routes, toolRestrictions=restrictions))
    assert list(resolve("lead", catalog).servers) == ["filesystem", "github"]
    scribe = resolve("scribe", catalog).servers["filesystem"]
    assert (scribe.allows("read_file"), scribe.allows("write_file")) == (True, False)


@pytest.mark.promise("DOC5-TIME")
def test_milliseconds_of_the_file_are_seconds_in_the_catalog_and_milliseconds_again() -> None:
    server: dict[str, JsonValue] = {"type": "local", "command": "npx", "tools": ["*"], "timeout": 12500}
    catalog = squad(json.dumps({"servers": {"postgres": server}, "agentServers": {}}))
    assert catalog.servers["postgres"].server.timeout == 12.5
    written: Any = write_squad(catalog)
    assert written["servers"]["postgres"]["timeout"] == 12500


def _pattern(name: str, server: dict[str, JsonValue], routes: dict[str, list[str] | None]) -> Catalog:
    """A squad where these agents have the server, each with these tools (None: all of them)."""
    content = {
        "servers": {name: server},
        "agentServers": {agent: [name] for agent in routes} | {"designer-without": []},
        "toolRestrictions": {a: {name: {"include": tools}} for a, tools in routes.items() if tools is not None},
    }
    return squad(json.dumps(content))


def _tools(catalog: Catalog, agent: str, server: str, tools: list[str]) -> list[str]:
    plan = resolve(agent, catalog)
    return [tool for tool in tools if server in plan.servers and plan.servers[server].allows(tool)]


TRELLO = ["list_boards", "list_cards", "create_card", "move_card"]
POSTGRES = ["query", "list_tables", "describe_table"]
SLACK = ["send_message", "list_channels", "search_messages"]
NOTION = ["search_pages", "read_page", "create_page", "update_page"]


def _remote(variable: str, token: str, tools: list[str]) -> dict[str, JsonValue]:
    headers: JsonValue = {"Authorization": f"Bearer ${{{token}}}"}
    return {"type": "http", "url": f"${{{variable}}}", "headers": headers, "tools": list[JsonValue](tools)}


@pytest.mark.promise("DOC5-PATTERN-A")
def test_pattern_a_the_lead_has_every_tool_and_the_scribe_reads() -> None:
    routes = {"lead": None, "scribe": ["list_boards", "list_cards"]}
    catalog = _pattern("trello", _remote("TRELLO_MCP_URL", "TRELLO_API_KEY", TRELLO), routes)
    everything = [*TRELLO, "delete_board"]
    assert _tools(catalog, "lead", "trello", everything) == TRELLO
    assert _tools(catalog, "scribe", "trello", everything) == ["list_boards", "list_cards"]
    supply = supply_of({"TRELLO_MCP_URL": "https://trello.example/mcp", "TRELLO_API_KEY": "k"})
    assert sent_headers(resolve("lead", catalog), "trello", supply) == {"Authorization": "Bearer k"}


@pytest.mark.promise("DOC5-PATTERN-B")
def test_pattern_b_the_backend_has_the_database_the_tester_reads_and_the_designer_has_nothing() -> None:
    server: dict[str, JsonValue] = {
        "type": "local",
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-postgres"],
        "env": {"DATABASE_URL": "${DATABASE_URL}"},
        "tools": list[JsonValue](POSTGRES),
    }
    routes = {"backend-dev": None, "tester": ["list_tables", "describe_table"]}
    catalog = _pattern("postgres", server, routes)
    everything = [*POSTGRES, "execute"]
    assert _tools(catalog, "backend-dev", "postgres", everything) == POSTGRES
    assert _tools(catalog, "tester", "postgres", everything) == ["list_tables", "describe_table"]
    assert _tools(catalog, "designer-without", "postgres", everything) == []


@pytest.mark.promise("DOC5-PATTERN-C")
def test_pattern_c_only_the_lead_and_the_scribe_reach_slack() -> None:
    catalog = _pattern("slack", _remote("SLACK_MCP_URL", "SLACK_BOT_TOKEN", SLACK), {"lead": None, "scribe": None})
    assert _tools(catalog, "lead", "slack", SLACK) == SLACK
    assert _tools(catalog, "scribe", "slack", SLACK) == SLACK
    assert _tools(catalog, "designer-without", "slack", SLACK) == []
    (answer,) = why_not(resolve("designer-without", catalog), "slack")
    assert "agent 'lead', agent 'scribe'" in answer.reason


@pytest.mark.promise("DOC5-PATTERN-D")
def test_pattern_d_the_scribe_writes_pages_and_the_others_read_them() -> None:
    read = ["search_pages", "read_page"]
    routes = {"scribe": None, "lead": read, "tester": read}
    catalog = _pattern("notion", _remote("NOTION_MCP_URL", "NOTION_API_KEY", NOTION), routes)
    assert _tools(catalog, "scribe", "notion", NOTION) == NOTION
    assert _tools(catalog, "lead", "notion", NOTION) == _tools(catalog, "tester", "notion", NOTION) == read


@pytest.mark.promise("ROUND-TRIP")
def test_a_squad_file_that_is_written_reads_as_the_same_catalog() -> None:
    for text in (CONFIG, changed(sessionServers=["filesystem"])):
        catalog = squad(text)
        assert squad(json.dumps(write_squad(catalog))) == catalog


@pytest.mark.promise("BAD-INPUT-SHAPE", "BAD-INPUT-REFS")
@pytest.mark.parametrize(
    ("parts", "code", "place"),
    [
        ({"agentServers": {"lead": ["githb"]}}, "missing_ref", "/agentServers/lead/0"),
        ({"agentServers": {"lead": "github"}}, "invalid_document", "/agentServers/lead"),
        ({"agentServers": {"lead": [1]}}, "invalid_document", "/agentServers/lead/0"),
        ({"toolRestrictions": {"leed": {}}}, "unknown_agent", "/toolRestrictions/leed"),
        ({"toolRestrictions": {"lead": {"slack": []}}}, "missing_ref", "/toolRestrictions/lead/slack"),
        (
            {"toolRestrictions": {"lead": {"github": {"only": []}}}},
            "invalid_document",
            "/toolRestrictions/lead/github/only",
        ),
        ({"servers": {"Bad Name": {"command": "x"}}}, "invalid_name", "/servers/Bad Name"),
        ({"servers": {"wink": {"command": "x"}}}, "invalid_name", "/servers/wink"),
        ({"servers": {"x": {"command": "x", "secret": 1}}}, "invalid_document", "/servers/x/secret"),
        ({"servers": {"x": {"command": "x", "timeout": "1s"}}}, "invalid_document", "/servers/x/timeout"),
        ({"sessionServers": ["nope"]}, "missing_ref", "/sessionServers/0"),
        ({"agents": {}}, "invalid_document", "/agents"),
    ],
)  # fmt: skip
def test_a_fault_in_a_squad_file_is_told_with_its_place(parts: dict[str, JsonValue], code: str, place: str) -> None:
    text = json.dumps(json.loads(CONFIG) | parts, indent=1)
    with pytest.raises(OutfitterError) as error:
        squad(text)
    assert error.value.code == code
    assert error.value.where.startswith("squad.json:")
    assert error.value.where.endswith(f" at {place}")


@pytest.mark.promise("ROUND-TRIP")
def test_a_catalog_that_says_more_than_a_squad_file_can_is_refused() -> None:
    catalog = squad()
    for more in (
        Catalog(catalog.servers, {"c": Capability("c")}, {}),
        Catalog(catalog.servers, {}, {"a": Agent("a", system_prompt="x")}),
        Catalog(catalog.servers, {}, {"a": Agent("a", servers={"gh": ServerRef("github")})}),
        Catalog(catalog.servers, {}, {"a": Agent("a", servers={"github": ServerRef("github", {"X-A": "1"})})}),
    ):
        with pytest.raises(OutfitterError):
            write_squad(more)


@pytest.mark.promise("DOC5-CONFIG")
def test_roles_and_fallbacks_are_read_and_written_again() -> None:
    file = json.loads(changed(roles={"tester": "tester", "lead": "none"}, **{"$schema": "https://x.example/s.json"}))
    file["servers"]["github"]["fallback"] = "use the gh CLI"
    read = read_squad_file(file, "squad.json")
    assert read.roles == {"tester": "tester", "lead": "none"}
    assert read.catalog.servers["github"].server.fallback == "use the gh CLI"
    written = write_squad(read.catalog, read.roles)
    assert read_squad_file(written, "squad.json") == read
    assert "roles" not in write_squad(read.catalog)


@pytest.mark.promise("N02")
@pytest.mark.parametrize(
    ("part", "value", "told", "path"),
    [
        ("roles", {"testr": "tester"}, "did you mean 'tester'", "/roles/testr"),
        ("roles", {"tester": 7}, "expected a text", "/roles/tester"),
        ("roles", ["tester"], "expected an object", "/roles"),
        ("toolRestrictions", {"scribe": {"postgres": {}}}, "does not have server", "/toolRestrictions/scribe/postgres"),
        ("sessionServers", ["githb"], "did you mean 'github'", "/sessionServers/0"),
    ],
)
def test_a_name_that_leads_nowhere_is_told_with_its_place(part: str, value: JsonValue, told: str, path: str) -> None:
    with pytest.raises(OutfitterError) as caught:
        squad(changed(**{part: value}))
    assert told in str(caught.value)
    assert path in str(caught.value)
