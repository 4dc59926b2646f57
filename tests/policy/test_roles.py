"""Document 5's role table, all 24 cells: what each role may do with each server, by filters and argument rules."""

from __future__ import annotations

import pytest

from outfitter.catalog import JsonValue
from outfitter.policy import Allow, Ask, Deny
from outfitter.resolution import resolve
from tests.shelf import a_catalog

GITHUB = ["list_issues", "get_issue", "create_issue", "list_pull_requests", "create_pull_request", "merge_pull_request",
          "delete_repository"]  # fmt: skip
FILES = ["read_file", "list_directory", "write_file", "delete_file"]
DATABASE = ["list_tables", "describe_table", "query", "execute"]
DEPLOY = ["list_deployments", "approve_deployment", "start_deployment"]
SERVERS: dict[str, list[str]] = {"github": GITHUB, "filesystem": FILES, "postgres": DATABASE, "deploy": DEPLOY}
READ_ISSUES: dict[str, JsonValue] = {"ref": "github", "tools": ["list_issues", "get_issue"]}
ISSUES_AND_PRS: dict[str, JsonValue] = {
    "ref": "github",
    "tools": {"include": ["*_issue*", "*_pull_request*"], "exclude": ["merge_pull_request"]},
}
READ_DATA: dict[str, JsonValue] = {"ref": "postgres", "tools": {"exclude": ["execute"]}}
SOME_FILES: dict[str, JsonValue] = {"ref": "filesystem", "tools": ["read_file", "list_directory", "write_file"]}


def _writes(folder: str) -> JsonValue:
    return {"tools": ["write_file"], "server": "filesystem", "arguments": {"/path": f"{folder}/**"}}


READ_ONLY_SQL: JsonValue = {"tools": ["query"], "server": "postgres", "arguments": {"/sql": ["SELECT *", "select *"]}}
ROLES: dict[str, dict[str, JsonValue]] = {
    "lead": {
        "mcpServers": {
            "github": {"ref": "github"},
            "filesystem": {"ref": "filesystem"},
            "postgres": READ_DATA,
            "deploy": {"ref": "deploy", "tools": ["list_deployments", "approve_deployment"]},
        },
        "rules": [READ_ONLY_SQL, {"tools": ["approve_deployment"], "effect": "ask", "server": "deploy"}],
    },
    "backend-dev": {
        "mcpServers": {
            "github": ISSUES_AND_PRS,
            "filesystem": {"ref": "filesystem"},
            "postgres": {"ref": "postgres"},
        }
    },
    "frontend-dev": {"mcpServers": {"github": ISSUES_AND_PRS, "filesystem": {"ref": "filesystem"}}},
    "tester": {
        "mcpServers": {"github": READ_ISSUES, "filesystem": SOME_FILES, "postgres": READ_DATA},
        "rules": [_writes("tests"), READ_ONLY_SQL],
    },
    "designer": {"mcpServers": {"github": READ_ISSUES, "filesystem": SOME_FILES}, "rules": [_writes("assets")]},
    "scribe": {"mcpServers": {"github": READ_ISSUES, "filesystem": SOME_FILES}, "rules": [_writes("docs")]},
}
SQL: dict[str, JsonValue] = {"sql": "SELECT 1"}
CHANGE: dict[str, JsonValue] = {"sql": "DROP TABLE x"}


def _path(path: str) -> dict[str, JsonValue]:
    return {"path": path}


Call = tuple[str, dict[str, JsonValue]]
FULL_GITHUB: list[Call] = [(tool, {}) for tool in GITHUB]
FULL_FILES: list[Call] = [(tool, _path("src/a.py")) for tool in FILES]
ISSUES: list[Call] = [("list_issues", {}), ("get_issue", {})]
NO_ISSUE_WRITES: list[Call] = [("create_issue", {}), ("create_pull_request", {}), ("delete_repository", {})]
PRS: list[Call] = [*ISSUES, ("create_issue", {}), ("create_pull_request", {}), ("list_pull_requests", {})]
NO_ADMIN: list[Call] = [("delete_repository", {}), ("merge_pull_request", {})]
READ_SQL: list[Call] = [("list_tables", {}), ("describe_table", {}), ("query", SQL)]
NO_CHANGE: list[Call] = [("query", CHANGE), ("query", {}), ("execute", SQL)]


def _folder(name: str) -> tuple[list[Call], list[Call]]:
    allowed: list[Call] = [("read_file", _path("src/a.py")), ("write_file", _path(f"{name}/a"))]
    denied: list[Call] = [
        ("write_file", _path("src/a.py")),
        ("write_file", _path(f"{name}/../src/a.py")),
        ("write_file", {}),
        ("delete_file", _path(f"{name}/a")),
    ]
    return allowed, denied


CELLS: list[tuple[str, str, tuple[list[Call], list[Call]] | None]] = [
    ("lead", "github", (FULL_GITHUB, [])),
    ("lead", "filesystem", (FULL_FILES, [])),
    ("lead", "postgres", (READ_SQL, NO_CHANGE)),
    ("lead", "deploy", ([("list_deployments", {})], [("start_deployment", {})])),
    ("backend-dev", "github", (PRS, NO_ADMIN)),
    ("backend-dev", "filesystem", (FULL_FILES, [])),
    ("backend-dev", "postgres", ([*READ_SQL, ("query", CHANGE), ("execute", CHANGE)], [])),
    ("backend-dev", "deploy", None),
    ("frontend-dev", "github", (PRS, NO_ADMIN)),
    ("frontend-dev", "filesystem", (FULL_FILES, [])),
    ("frontend-dev", "postgres", None),
    ("frontend-dev", "deploy", None),
    ("tester", "github", (ISSUES, NO_ISSUE_WRITES)),
    ("tester", "filesystem", _folder("tests")),
    ("tester", "postgres", (READ_SQL, NO_CHANGE)),
    ("tester", "deploy", None),
    ("designer", "github", (ISSUES, NO_ISSUE_WRITES)),
    ("designer", "filesystem", _folder("assets")),
    ("designer", "postgres", None),
    ("designer", "deploy", None),
    ("scribe", "github", (ISSUES, NO_ISSUE_WRITES)),
    ("scribe", "filesystem", _folder("docs")),
    ("scribe", "postgres", None),
    ("scribe", "deploy", None),
]


@pytest.mark.promise("DOC5-ROLES")
@pytest.mark.parametrize(("role", "server", "calls"), CELLS, ids=[f"{role}-{server}" for role, server, _ in CELLS])
def test_each_cell_of_the_role_table_holds(role: str, server: str, calls: tuple[list[Call], list[Call]] | None) -> None:
    entries: dict[str, dict[str, JsonValue]] = {
        name: {"url": f"http://localhost/{name}", "known_tools": list[JsonValue](tools)}
        for name, tools in SERVERS.items()
    }
    plan = resolve(role, a_catalog(entries, {role: {"role": role, **ROLES[role]}}))
    if calls is None:
        assert server not in plan.servers
        return
    allowed, denied = calls
    for tool, arguments in allowed:
        assert isinstance(plan.servers[server].decide(tool, arguments), Allow), tool
    for tool, arguments in denied:
        assert isinstance(plan.servers[server].decide(tool, arguments), Deny), tool


@pytest.mark.promise("DOC5-ROLES")
def test_the_lead_approves_deployments_and_a_person_is_asked() -> None:
    entries: dict[str, dict[str, JsonValue]] = {name: {"url": f"http://localhost/{name}"} for name in SERVERS}
    plan = resolve("lead", a_catalog(entries, {"lead": ROLES["lead"]}))
    assert isinstance(plan.servers["deploy"].decide("approve_deployment", {}), Ask)


def test_the_role_table_has_every_role_and_server() -> None:
    assert {(role, server) for role, server, _ in CELLS} == {(role, server) for role in ROLES for server in SERVERS}
