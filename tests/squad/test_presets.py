"""Document 5's security table: every cell at the list and at the call, and no way round it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.catalog import (
    Agent,
    Capability,
    Catalog,
    Effect,
    InlineServer,
    JsonValue,
    MCPServer,
    ServerEntry,
    ServerRef,
    ToolFilter,
    ToolRule,
)
from outfitter.errors import Invalid, UnknownAgent
from outfitter.policy import Allow, Deny
from outfitter.resolution import PlannedServer, explain, resolve, why_not
from outfitter.squad import PRESETS, Kind, apply_preset, apply_presets, fit_server, kind_of, preset_for

ROLES = ("lead", "backend-dev", "frontend-dev", "tester", "designer", "scribe")
# What the servers offer: github-mcp-server, server-filesystem, postgres-mcp and mcp-server-sqlite, a deploy server.
TOOLS = {
    "github": ("issue_read", "list_issues", "issue_write", "pull_request_read", "merge_pull_request", "push_files",
               "create_repository", "run_workflow", "assign_copilot_to_issue"),
    "filesystem": ("read_file", "read_text_file", "read_media_file", "read_multiple_files", "write_file", "edit_file",
                   "create_directory", "list_directory", "list_directory_with_sizes", "directory_tree", "move_file",
                   "search_files", "get_file_info", "list_allowed_directories", "delete_file"),
    "database": ("list_tables", "read_query", "query", "write_query", "create_table", "drop-database"),
    "deploy": ("list_deployments", "approve_deployment", "start_deployment", "rollback"),
}  # fmt: skip
ISSUES = ("issue_read", "list_issues")
FILES = tuple(tool for tool in TOOLS["filesystem"] if tool != "delete_file")
READS = ("list_tables", "read_query", "query")
OFFERED: dict[str, dict[str, tuple[str, ...]]] = {
    "lead": {
        "github": TOOLS["github"],
        "filesystem": TOOLS["filesystem"],
        "database": READS,
        "deploy": ("list_deployments", "approve_deployment"),
    },
    "backend-dev": {
        "github": (*ISSUES, "issue_write", "pull_request_read", "merge_pull_request"),
        "filesystem": TOOLS["filesystem"],
        "database": TOOLS["database"],
        "deploy": (),
    },
    "frontend-dev": {
        "github": (*ISSUES, "issue_write", "pull_request_read", "merge_pull_request"),
        "filesystem": TOOLS["filesystem"],
        "database": (),
        "deploy": (),
    },
    "tester": {"github": ISSUES, "filesystem": FILES, "database": READS, "deploy": ()},
    "designer": {"github": ISSUES, "filesystem": FILES, "database": (), "deploy": ()},
    "scribe": {"github": ISSUES, "filesystem": FILES, "database": (), "deploy": ()},
}
WRM = {"write", "move_", "read_"}
FOLDER = {"tester": "tests", "designer": "assets", "scribe": "docs"}


def entries() -> list[ServerEntry]:
    return [
        ServerEntry(MCPServer.http(name, f"https://{name}.example/mcp"), known_tools=tools)
        for name, tools in TOOLS.items()
    ]


def plan(role: str, server: str, agent: Agent | None = None) -> PlannedServer:
    """One server of an agent of this role, as it is enforced."""
    one = agent or Agent(role, role=role, servers={name: ServerRef(name) for name in TOOLS})
    return resolve(one.name, apply_presets(Catalog.of(entries(), [], [one]))).servers[server]


def allows(role: str, server: str, tool: str, arguments: Mapping[str, JsonValue] | None = None) -> bool:
    return isinstance(plan(role, server).decide(tool, arguments or {}), Allow)


@pytest.mark.promise("SQUAD-TABLE")
@pytest.mark.parametrize("server", TOOLS)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_offered_exactly_what_its_cell_says(role: str, server: str) -> None:
    assert set(plan(role, server).offered_tools() or ()) == set(OFFERED[role][server])


@pytest.mark.promise("SQUAD-TABLE")
@pytest.mark.parametrize("server", TOOLS)
@pytest.mark.parametrize("role", ROLES)
def test_a_tool_outside_the_cell_is_denied_at_the_call(role: str, server: str) -> None:
    for tool in set(TOOLS[server]) - set(OFFERED[role][server]):
        assert isinstance(plan(role, server).decide(tool, {"path": "tests/a"}), Deny), tool


@pytest.mark.promise("SQUAD-TABLE")
@pytest.mark.parametrize("role", ROLES)
def test_files_are_read_everywhere_and_written_where_the_role_writes(role: str) -> None:
    assert allows(role, "filesystem", "read_multiple_files", {"paths": ["src/a.py", "/anywhere/b"]})
    mine, other = FOLDER.get(role, "src"), "elsewhere"
    for tool in ("write_file", "edit_file", "create_directory"):
        assert allows(role, "filesystem", tool, {"path": f"{mine}/deep/a"})
        assert allows(role, "filesystem", tool, {"path": f"{other}/a"}) is (role not in FOLDER)
    both = {"source": f"{mine}/a", "destination": f"{mine}/b"}
    assert allows(role, "filesystem", "move_file", both)
    for end in both:
        assert allows(role, "filesystem", "move_file", {**both, end: f"{other}/a"}) is (role not in FOLDER)


PATHS_ELSEWHERE = [
    "src/a.py", "tests/../src/a.py", "/tests/a.py", "/srv/project/src/a.py", "../tests/a.py", "./../tests/a.py",
    "Tests/a.py", "TESTS/a.py", "testsuite/a.py", "test/a.py", "tests", "tests/", "tests/.", ".", "", "~/tests/a.py",
    "tests\\a.py", "tests\\..\\src\\a.py", "src\\..\\tests/a.py", "tests/a\0/../../src/a", "tests//../src/a.py",
    "%74ests/a.py", "tests%2fa.py", "tests\u2215a.py", "file:///tests/a.py", " tests/a.py", "tests/" + "a/" * 4000,
]  # fmt: skip


@pytest.mark.promise("SQUAD-PATHS")
@pytest.mark.parametrize("path", PATHS_ELSEWHERE)
def test_no_spelling_of_a_path_gets_round_the_folder(path: str) -> None:
    assert not allows("tester", "filesystem", "write_file", {"path": path, "content": ""})
    assert not allows("tester", "filesystem", "edit_file", {"path": path, "edits": []})
    assert not allows("tester", "filesystem", "move_file", {"source": path, "destination": "tests/a"})
    assert not allows("tester", "filesystem", "move_file", {"source": "tests/a", "destination": path})


@pytest.mark.promise("SQUAD-PATHS")
@pytest.mark.parametrize(
    "arguments",
    [{}, {"path": None}, {"path": ["tests/a"]}, {"path": {"x": "tests/a"}}, {"file": "tests/a"}, {"Path": "tests/a"}],
)
def test_a_write_that_names_no_path_is_denied(arguments: dict[str, JsonValue]) -> None:
    assert not allows("tester", "filesystem", "write_file", arguments)


@pytest.mark.promise("SQUAD-PATHS")
@pytest.mark.parametrize("path", ["tests/a.py", "./tests/a.py", "tests//a.py", "tests/./a.py", "src/../tests/a.py"])
def test_every_plain_spelling_of_a_path_in_the_folder_is_fine(path: str) -> None:
    assert allows("tester", "filesystem", "write_file", {"path": path})


@pytest.mark.promise("SQUAD-PATHS")
@given(st.lists(st.sampled_from(["tests", "src", "..", ".", "", "a", "~", "docs"]), min_size=1, max_size=8))
def test_what_is_allowed_to_write_lies_in_the_folder_however_it_is_spelled(parts: list[str]) -> None:
    import posixpath

    path = "/".join(parts)
    if allows("tester", "filesystem", "write_file", {"path": path}):
        assert posixpath.normpath(posixpath.join("/project", path)).startswith("/project/tests/")


@pytest.mark.promise("SQUAD-PATHS")
@pytest.mark.parametrize("root", ["/srv/mcp-project", "/srv/a[b]*?/"])
def test_absolute_paths_in_the_workspace_are_taken_like_relative_ones(root: str) -> None:
    package = "@modelcontextprotocol/server-filesystem"
    for argument, meant in ((root, None), ("${WORKSPACE_ROOT:-.}", root)):
        entry = ServerEntry(MCPServer.npm("files", package, [argument]), known_tools=TOOLS["filesystem"])
        agent = Agent("tester", role="tester", servers={"files": ServerRef("files")})
        server = resolve("tester", apply_presets(Catalog.of([entry], [], [agent]), root=meant)).servers["files"]

        def writes(path: str, server: PlannedServer = server) -> bool:
            return isinstance(server.decide("write_file", {"path": path}), Allow)

        place = root.rstrip("/")
        assert writes(f"{place}/tests/a")
        assert writes("tests/a")
        for path in ("/src/a", "/tests/../src/a", "x/tests/a", "/../tests/a", "/tests\\a"):
            assert not writes(place + path)
        assert not writes("/srv/other/tests/a")


def test_the_folder_itself_can_be_made_and_not_written_over() -> None:
    assert allows("tester", "filesystem", "create_directory", {"path": "tests"})
    assert not allows("tester", "filesystem", "write_file", {"path": "tests"})


@pytest.mark.promise("SQUAD-READ-ONLY")
@pytest.mark.parametrize(
    ("sql", "is_read"),
    [
        ("SELECT 1", True),
        ("select * from orders where note = 'a/b'", True),
        ("SELECT\n  id\nFROM orders", True),
        ("INSERT INTO orders VALUES (1)", False),
        ("DROP TABLE orders", False),
        ("selection", False),
        ("WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone", False),
        ("EXPLAIN ANALYZE DELETE FROM orders", False),
        ("SELECT 1; DROP TABLE orders", False),
        ("SELECT 1;COMMIT;DROP TABLE orders", False),
        ("SELECT * INTO copied FROM orders", False),
        ("SELECT * INTO/**/copied FROM orders", False),
        ('SELECT 1 AS"a"iNtO"copied"', False),
        ("SELECT 1 -- and more", False),
        ("DROP TABLE orders--/../SELECT 1", False),
        ("SELECT 1; DROP TABLE orders--/../SELECT 1", False),
        ("SELECT '" + "x" * 5000 + "'", False),
        ("", False),
    ],
)
def test_a_reader_runs_one_plain_select_and_nothing_else(sql: str, is_read: bool) -> None:
    for role in ("lead", "tester"):
        assert allows(role, "database", "query", {"sql": sql}) is is_read
        assert allows(role, "database", "read_query", {"query": sql}) is is_read
    assert allows("backend-dev", "database", "query", {"sql": sql})


@pytest.mark.promise("SQUAD-READ-ONLY")
def test_sql_in_an_argument_that_nobody_looks_at_is_denied() -> None:
    assert not allows("tester", "database", "query", {"query": "SELECT 1"})
    assert not allows("tester", "database", "query", {"sql": "SELECT 1", "query": "DROP TABLE orders"})
    assert not allows("tester", "database", "read_query", {"query": "SELECT 1", "sql": "DROP TABLE orders"})


@pytest.mark.promise("SQUAD-READ-ONLY")
@pytest.mark.parametrize(
    ("pipeline", "is_read"),
    [
        ([{"$match": {"a": 1}}], True),
        ([{"$limit": 1}], True),
        ([{"$match": {"a": 1}}, {"$out": "copied"}], False),
        ([{"$merge": {"into": "copied"}}], False),
        ([{"$out": None}], False),
    ],
)
def test_an_aggregation_that_writes_is_denied_to_a_reader(pipeline: list[JsonValue], is_read: bool) -> None:
    mongo = ServerEntry(MCPServer.npm("mongodb", "mongodb-mcp-server"), known_tools=("aggregate", "find"))
    agent = Agent("tester", role="tester", servers={"mongodb": ServerRef("mongodb")})
    server = resolve("tester", apply_presets(Catalog.of([mongo], [], [agent]))).servers["mongodb"]
    assert isinstance(server.decide("aggregate", {"pipeline": pipeline}), Allow) is is_read


@pytest.mark.promise("SQUAD-TABLE")
def test_explain_and_why_not_say_the_reason_of_the_rule() -> None:
    agent = Agent("tester", role="tester", servers={"filesystem": ServerRef("filesystem")})
    planned = resolve("tester", apply_presets(Catalog.of(entries(), [], [agent])))
    tools = {tool.name: tool for tool in explain(planned).servers[0].tools or ()}
    assert any("tester: writes only under tests/**" in rule for rule in tools["write_file"].rules)
    assert "tester: writes only under tests/**" in why_not(planned, "write_file")[0].reason
    decision = planned.servers["filesystem"].decide("write_file", {"path": "src/a.py"})
    assert isinstance(decision, Deny)
    assert decision.reason == "tester: writes only under tests/** (/path must match tests/**)"


@pytest.mark.promise("SQUAD-NARROWS")
@pytest.mark.parametrize(
    ("own", "offered"),
    [
        (ToolFilter(("read_t*", "write_file", "delete_file")), {"read_text_file", "write_file"}),
        (ToolFilter(exclude=("write_*", "move_*", "read_*")), {tool for tool in FILES if tool[:5] not in WRM}),
        (ToolFilter(()), set[str]()),
        (ToolFilter(("*",)), set(FILES)),
    ],
)  # fmt: skip
def test_a_preset_only_narrows_what_the_agent_has(own: ToolFilter, offered: set[str]) -> None:
    agent = Agent("tester", role="tester", servers={"filesystem": ServerRef("filesystem", tools=own)})
    assert set(plan("tester", "filesystem", agent).offered_tools() or ()) == offered


@pytest.mark.promise("SQUAD-NARROWS")
@pytest.mark.parametrize(
    ("rule", "written"),
    [
        (ToolRule(("write_file",), arguments={"/path": ("tests/unit/**",)}), {"tests/unit/a"}),
        (ToolRule(("write_file",), arguments={"/path": ("tests/**",)}), {"tests/unit/a", "tests/a"}),
        (ToolRule(("write_file",), arguments={"/path": ("tests/../src/**",)}), set[str]()),
        (ToolRule(("write_*",), arguments={"/path": ("docs/**",)}), set[str]()),
        (ToolRule(("*",), server="*"), set[str]()),
        (ToolRule(("write_file",), Effect.DENY, arguments={"/path": ("tests/unit/**",)}), {"tests/a"}),
    ],
)
def test_rules_of_the_agent_s_own_are_never_widened_by_the_preset(rule: ToolRule, written: set[str]) -> None:
    agent = Agent("tester", role="tester", servers={"filesystem": ServerRef("filesystem")}, rules=(rule,))
    server = plan("tester", "filesystem", agent)
    paths = ("tests/unit/a", "tests/a", "docs/a", "src/a")
    assert {path for path in paths if isinstance(server.decide("write_file", {"path": path}), Allow)} == written


def test_servers_that_everybody_shares_and_inline_ones_are_narrowed_too() -> None:
    shared = Capability("squad-session", servers={"filesystem": ServerRef("filesystem")})
    inline = InlineServer(MCPServer.npm("data", "@modelcontextprotocol/server-postgres"))
    agent = Agent("scribe", role="scribe", capabilities=("squad-session",), servers={"data": inline})
    found = resolve("scribe", apply_presets(Catalog.of(entries(), [shared], [agent]))).servers
    assert isinstance(found["filesystem"].decide("write_file", {"path": "src/a"}), Deny)
    assert isinstance(found["filesystem"].decide("write_file", {"path": "docs/a"}), Allow)
    assert isinstance(found["data"].decide("query", {"sql": "SELECT 1"}), Deny)


@pytest.mark.parametrize(
    ("server", "kind"),
    [
        (MCPServer.http("github", "https://mcp.example"), Kind.GITHUB),
        (MCPServer.http("code", "https://api.githubcopilot.com/mcp/"), Kind.GITHUB),
        (MCPServer.npm("work", "@modelcontextprotocol/server-filesystem", ["/srv/db"]), Kind.FILESYSTEM),
        (MCPServer.stdio("work", "node", ["/opt/db/node_modules/x/server-filesystem/dist/index.js"]), Kind.FILESYSTEM),
        (MCPServer.uvx("store", "postgres-mcp", ["--access-mode=unrestricted"]), Kind.DATABASE),
        (MCPServer.npm("store", "mongodb-mcp-server"), Kind.DATABASE),
        (MCPServer.stdio("orders-db", "orders"), Kind.DATABASE),
        (MCPServer.http("deploy", "https://deploy.example"), Kind.DEPLOY),
        (MCPServer.npm("trello", "@delorenj/mcp-server-trello"), None),
        (MCPServer.stdio("plain", "python", ["server.py", "files", "db"]), None),
    ],
)
def test_the_kind_of_a_server_is_told_by_its_name_its_package_or_its_host(server: MCPServer, kind: Kind | None) -> None:
    assert kind_of(server.name, ServerEntry(server)) is kind


@pytest.mark.parametrize("role", ["tester", "Tester", "backend_dev", "Backend Dev", " backend developer ", "FRONTEND"])
def test_a_role_is_known_however_it_is_written(role: str) -> None:
    assert preset_for(role) is not None


@pytest.mark.promise("SQUAD-ROLES")
def test_a_role_is_given_by_name_or_by_the_file_and_can_be_taken_off() -> None:
    agents = [
        Agent(name, role=name, servers={"filesystem": ServerRef("filesystem")})
        for name in ("tester", "tester-1", "odd")
    ]
    catalog = Catalog.of(entries(), [], agents)

    def writes(roles: dict[str, str], name: str) -> bool:
        server = resolve(name, apply_presets(catalog, roles)).servers["filesystem"]
        return isinstance(server.decide("write_file", {"path": "src/a"}), Allow)

    assert not writes({}, "tester")
    assert writes({}, "tester-1")
    assert not writes({"tester-1": "tester"}, "tester-1")
    assert writes({"tester": "none"}, "tester")
    assert writes({}, "odd")
    with pytest.raises(Invalid, match=r"no preset for role 'testr'.*did you mean 'tester'"):
        apply_presets(catalog, {"tester-1": "testr"})
    with pytest.raises(UnknownAgent, match="testr"):
        apply_presets(catalog, {"testr": "tester"})


def test_an_agent_without_a_preset_is_left_as_it_is() -> None:
    agent = Agent("reviewer", role="reviewer", servers={"filesystem": ServerRef("filesystem")})
    assert apply_preset(agent, {}) == agent


def test_a_server_of_another_kind_is_given_to_an_adapter_unchanged() -> None:
    server = MCPServer.npm("trello", "@delorenj/mcp-server-trello")
    assert fit_server(PRESETS[0], server) == server
