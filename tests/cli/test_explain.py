"""The two questions on the command line: explain and why-not."""

from __future__ import annotations

import pytest

from tests.cli.terminal import Terminal

RUN = {"agent_name": "sprint-researcher", "mcp_headers": {"docs": {"X-Context-Scope-Filters": {"sprint_id": "42"}}}}


@pytest.mark.promise("CLI-EXPLAIN")
def test_explain_prints_value_source_and_what_was_overruled(demo: Terminal) -> None:
    printed = demo.run("explain", "sprint-researcher")
    assert printed.code == 0, printed.err
    assert "X-Context-Namespace: research-docs" in printed.out
    assert "from capability 'research-capability' (capabilities/research-capability.json)" in printed.out
    assert "overrides default from registry 'context-store' (mcp-servers/context-store.json)" in printed.out
    assert "not delete_document: excluded by 'delete_document' of agent 'sprint-researcher'" in printed.out


@pytest.mark.promise("CLI-EXPLAIN")
def test_explain_json_says_the_same_in_values(demo: Terminal) -> None:
    demo.write("run.json", RUN)
    explained = demo.run("explain", "sprint-researcher", "--run", "run.json", "--json").json()
    (server,) = explained["servers"]
    headers = {header["name"]: header for header in server["headers"]}
    assert headers["X-Context-Scope-Filters"]["value"] == '{"sprint_id":"42"}'
    assert headers["X-Context-Scope-Filters"]["origin"]["level"] == "run"
    assert headers["X-Context-Scope-Filters"]["overruled"][0]["origin"]["level"] == "agent"
    assert {tool["name"]: tool["offered"] for tool in server["tools"]}["delete_document"] is False


def test_a_run_can_come_from_standard_input(demo: Terminal) -> None:
    printed = demo.run("explain", "sprint-researcher", "--run", "-", stdin='{"agent_name": "sprint-researcher"}')
    assert printed.code == 0, printed.err


def test_a_parent_chain_is_resolved_outermost_first(demo: Terminal) -> None:
    demo.write("root.json", {"agent_name": "alpha-project-assistant", "session_id": "root"})
    demo.write("child.json", {"agent_name": "project-researcher", "session_id": "child"})
    explained = demo.run(
        "explain", "project-researcher", "--parent", "root.json", "--parent", "child.json", "--json"
    ).json()
    atlassian = next(server for server in explained["servers"] if server["alias"] == "atlassian")
    projects = next(header for header in atlassian["headers"] if header["name"] == "X-Jira-Projects")
    assert projects["value"] == "ALPHA"
    (removed,) = atlassian["removed"]
    assert removed["name"] == "X-Confluence-Spaces"
    origin = removed["origin"]
    assert [origin["name"], origin["via"]["name"], origin["via"]["via"]["name"]] == [
        "project-researcher",
        "alpha-project-assistant",
        "alpha-project-assistant",
    ]


def test_a_run_for_another_agent_is_refused(demo: Terminal) -> None:
    demo.write("run.json", RUN)
    printed = demo.run("explain", "tester", "--run", "run.json")
    assert printed.code == 3
    assert "the run is for agent 'sprint-researcher', not 'tester'" in printed.err


def test_a_refused_run_lists_every_problem(demo: Terminal) -> None:
    headers = {"jira": {"X-API-Key": "mine", "X-Jira-Projects": "GAMMA"}, "wiki": {}}
    demo.write("run.json", {"agent_name": "alpha-project-assistant", "mcp_headers": headers})
    printed = demo.run("explain", "alpha-project-assistant", "--run", "run.json", "--json")
    problems = {problem["code"] for problem in printed.json()["error"]["problems"]}
    assert printed.code == 3
    assert problems == {"locked_header", "narrowed_header", "unknown_alias"}


@pytest.mark.promise("CLI-WHY-NOT")
@pytest.mark.parametrize(
    ("agent", "name", "kind", "has_it", "reason"),
    [
        ("tester", "merge_pull_request", "tool", False, "not in its include list"),
        ("tester", "github_merge_pull_request", "tool", False, "not in its include list"),
        ("tester", "github/merge_pull_request", "tool", False, "not in its include list"),
        ("tester", "github_get_issue", "tool", True, "every filter lets it in"),
        ("tester", "write_file", "tool", True, "allow when /path matches tests/**"),
        ("designer", "postgres", "server", False, "agent 'backend-dev'"),
        ("designer", "execute", "tool", False, "it belongs to server 'postgres'"),
        ("alpha-project-assistant", "x-confluence-spaces", "header", False, "removed (null) by agent"),
        ("global-analyst", "X-Neo4j-Partition", "header", False, "no level gives it a value"),
        ("lead", "nonsense", "unknown", False, "nothing of this name is known"),
    ],
)
def test_why_not_names_the_reason(demo: Terminal, agent: str, name: str, kind: str, has_it: bool, reason: str) -> None:
    answers = demo.run("why-not", agent, name, "--json").json()["answers"]
    assert any(a["kind"] == kind and a["has_it"] is has_it and reason in a["reason"] for a in answers), answers


def test_why_not_in_words_says_what_would_change_it(demo: Terminal) -> None:
    printed = demo.run("why-not", "tester", "merge_pull_request")
    assert "tool merge_pull_request of server 'github': agent 'tester' does not have it" in printed.out
    assert "to change it: change the tools of agent 'tester'" in printed.out


def test_an_unknown_agent_is_not_found_and_a_near_one_is_suggested(demo: Terminal) -> None:
    printed = demo.run("explain", "testr")
    assert printed.code == 4
    assert "did you mean 'tester'?" in printed.err
