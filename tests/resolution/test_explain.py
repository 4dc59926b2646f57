"""Explain and why_not: every value with its source, every absence with its reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from outfitter.resolution import RunPlan, explain, resolve, why_not
from tests.shelf import a_catalog, a_run, blank_headers


def plan() -> RunPlan:
    catalog = a_catalog(
        {
            "docs": """{"name": "Docs", "url": "http://d/mcp", "known_tools": ["read", "write", "purge"],
              "tools": {"exclude": ["purge"]},
              "header_schema": {"X-Scope": {"type": "json", "merge": "shallow"}, "X-Team": {"locked": true},
                                "X-Opt": {}, "X-Key": {"sensitive": true}},
              "default_headers": {"X-Scope": {"a": 1, "b": 1}, "X-Team": "core", "X-Key": "hush"}}""",
            "mail": '{"url": "http://m/mcp", "known_tools": ["send"]}',
        },
        {
            "ann": """{"role": "writer", "capabilities": ["kit"], "mcpServers": {"d": {
              "headers": {"X-Scope": {"b": 2}, "X-Gone": null}, "tools": ["read"]}},
              "rules": [{"tools": ["read"], "server": "d", "reason": "docs only",
                         "arguments": {"/path": "docs/**"}}]}"""
        },
        {"kit": '{"mcpServers": {"d": {"ref": "docs", "headers": {"X-Gone": "x"}}}}'},
    )
    return resolve("ann", catalog, a_run('{"agent_name": "ann", "mcp_headers": {"d": {"X-Scope": {"c": 3}}}}'))


@pytest.mark.promise("RESOLVE-EXPLAINED")
def test_a_merged_header_says_which_level_gave_each_member() -> None:
    assert blank_headers(plan(), "d")["X-Scope"] == '{"a":1,"b":2,"c":3}'
    (header,) = [header for header in explain(plan()).servers[0].headers if header.name == "X-Scope"]
    assert {key: origin.level.value for key, origin in (header.members or {}).items()} == {
        "a": "registry", "b": "agent", "c": "run",
    }  # fmt: skip


@pytest.mark.promise("RESOLVE-EXPLAINED")
def test_the_explanation_as_json_has_every_value_with_its_level_and_file() -> None:
    shown: Any = json.loads(json.dumps(explain(plan()).to_json()))
    (server,) = shown["servers"]
    headers = {header["name"]: header for header in server["headers"]}
    assert (shown["agent"], shown["role"], shown["source"]) == ("ann", "writer", "agents/ann.json")
    assert headers["X-Team"]["origin"] == {"level": "registry", "name": "docs", "where": "mcp-servers/docs.json"}
    assert headers["X-Team"]["flags"] == ["locked"]
    assert headers["X-Key"]["value"].startswith("•••••• #")
    assert server["removed"][0]["name"] == "X-Gone"
    assert [value["value"] for value in server["removed"][0]["overruled"]] == ["x"]
    assert [(tool["name"], tool["shown"], tool["offered"]) for tool in server["tools"]] == [
        ("read", "d_read", True), ("write", None, False), ("purge", None, False),
    ]  # fmt: skip
    assert server["tools"][0]["rules"] == ["allow when /path matches docs/**: docs only"]
    assert server["tools"][2]["gate"] == "excluded by 'purge' of registry 'docs' (mcp-servers/docs.json)"
    assert [notice["code"] for notice in shown["notices"]] == ["undeclared_header"]


@pytest.mark.promise("WHY-NOT")
@pytest.mark.parametrize(
    ("name", "kind", "has_it", "words"),
    [
        ("purge", "tool", False, "excluded by 'purge' of registry 'docs'"),
        ("d/write", "tool", False, "not in its include list [read] of agent 'ann'"),
        ("d_write", "tool", False, "not in its include list [read] of agent 'ann'"),
        ("d_read", "tool", True, "calls are held to: allow when /path matches docs/**"),
        ("d/reed", "tool", False, "not in its include list"),
        ("send", "tool", False, "belongs to server 'mail', which the agent does not have"),
        ("mail/send", "server", False, "nobody uses it"),
        ("mail", "server", False, "neither agent 'ann' nor its capabilities refer to it"),
        ("docs", "server", True, "given as 'd' by capability 'kit'"),
        ("d", "server", True, "given as 'd'"),
        ("x-gone", "header", False, "removed (null) by agent 'ann'"),
        ("X-Opt", "header", False, "no level gives it a value"),
        ("X-Team", "header", True, "given by registry 'docs'"),
        ("nonsense", "unknown", False, "nothing of this name is known"),
    ],
)
def test_why_not_tells_the_gate_the_level_or_that_nothing_is_known(
    name: str, kind: str, words: str, *, has_it: bool
) -> None:
    answers = [answer for answer in why_not(plan(), name) if answer.kind == kind]
    assert answers
    assert answers[0].has_it is has_it
    assert words in answers[0].reason
    assert answers[0].to_json()["reason"] == answers[0].reason
