"""A child stays within its parent: by registry entry, by equal inline definition, under whatever alias."""

from __future__ import annotations

import pytest

from outfitter.catalog import Agent, Catalog, InlineServer, JsonValue, MCPServer, RunRequest, ServerRef
from outfitter.errors import Refused
from outfitter.policy import Allow, Ask, Deny
from outfitter.resolution import explain, resolve
from tests.shelf import Text, a_catalog, a_run, blank_headers, codes_of, sent_headers, supply_of

ENTRY = '{"url": "http://x/mcp", "known_tools": ["read", "write", "delete"]}'


def agent(alias: str, *, ref: str = "s", **more: JsonValue) -> dict[str, JsonValue]:
    return {"mcpServers": {alias: {"ref": ref, **more}}}


def family(parent: Text, child: Text, entry: str = ENTRY) -> Catalog:
    return a_catalog({"s": entry, "t": '{"url": "http://t/mcp"}'}, {"parent": parent, "child": child})


@pytest.mark.promise("CHILD-WITHIN-PARENT")
def test_the_same_entry_under_another_alias_is_still_the_parents() -> None:
    catalog = family(agent("docs", headers={"X-S": "p"}, tools=["read"]), agent("kb", headers={"X-S": "c"}))
    child = resolve("child", catalog, RunRequest("child"), resolve("parent", catalog, RunRequest("parent")))
    assert blank_headers(child, "kb") == {"X-S": "p"}
    assert child.servers["kb"].offered_tools() == ("read",)


@pytest.mark.promise("CHILD-WITHIN-PARENT")
def test_another_entry_is_not_the_parents() -> None:
    catalog = family(agent("docs", headers={"X-S": "p"}), agent("docs", ref="t", headers={"X-S": "c"}))
    child = resolve("child", catalog, RunRequest("child"), resolve("parent", catalog, RunRequest("parent")))
    assert blank_headers(child, "docs") == {"X-S": "c"}


@pytest.mark.promise("CHILD-WITHIN-PARENT")
def test_an_equal_inline_definition_under_another_alias_is_still_the_parents() -> None:
    inline: JsonValue = {"url": "http://x/mcp", "headers": {"X-S": "p"}, "tools": ["read"]}
    open_: JsonValue = {"url": "http://x/mcp", "headers": {"X-S": "c"}}
    catalog = family({"mcpServers": {"docs": inline}}, {"mcpServers": {"kb": open_}})
    child = resolve("child", catalog, RunRequest("child"), resolve("parent", catalog, RunRequest("parent")))
    assert blank_headers(child, "kb") == {"X-S": "p"}
    assert not child.servers["kb"].allows("write")


@pytest.mark.promise("CHILD-WITHIN-PARENT")
def test_what_the_parent_removed_stays_removed() -> None:
    catalog = family(agent("s", headers={"X-S": None}), agent("s", headers={"x-s": "c"}))
    child = resolve("child", catalog, RunRequest("child"), resolve("parent", catalog, RunRequest("parent")))
    assert blank_headers(child, "s") == {}


@pytest.mark.promise("CHILD-WITHIN-PARENT")
def test_two_scopes_of_one_entry_are_told_apart_by_alias_or_refused() -> None:
    parent: dict[str, JsonValue] = {
        "mcpServers": {
            "alpha": {"ref": "s", "headers": {"X-S": "alpha"}},
            "beta": {"ref": "s", "headers": {"X-S": "beta"}},
        }
    }
    catalog = family(parent, agent("beta"))
    plan = resolve("parent", catalog, RunRequest("parent"))
    assert blank_headers(resolve("child", catalog, RunRequest("child"), plan), "beta") == {"X-S": "beta"}
    other = Agent("other", servers={"gamma": ServerRef("s")})
    with pytest.raises(Refused) as refused:
        resolve(other, catalog, RunRequest("other"), plan)
    assert codes_of(refused.value) == ["alias_conflict"]


@pytest.mark.promise("CHILD-WITHIN-PARENT")
def test_the_parents_rules_hold_for_the_child_too() -> None:
    rules: JsonValue = [
        {"tools": ["write"], "arguments": {"/path": "tests/**"}},
        {"tools": ["delete"], "effect": "deny", "server": "docs"},
    ]
    mine: JsonValue = [{"tools": ["read"], "effect": "ask"}, {"tools": ["write"], "effect": "allow"}]
    catalog = family(agent("docs") | {"rules": rules}, agent("kb") | {"rules": mine})
    server = resolve("child", catalog, RunRequest("child"), resolve("parent", catalog, RunRequest("parent"))).servers[
        "kb"
    ]
    assert isinstance(server.decide("write", {"path": "tests/x"}), Allow)
    assert isinstance(server.decide("write", {"path": "src/x"}), Deny)
    assert isinstance(server.decide("delete", {}), Deny)
    assert isinstance(server.decide("read", {}), Ask)


@pytest.mark.promise("CHILD-WITHIN-PARENT")
def test_the_ids_in_a_parents_header_stay_the_parents() -> None:
    entry = '{"url": "http://x/mcp", "default_headers": {"X-Root": "${AGENT_SESSION_ID}/${runtime.run_id}"}}'
    catalog = family(agent("s"), agent("s"), entry)
    parent = resolve("parent", catalog, RunRequest("parent", session_id="ses-p", run_id="run-p"))
    child = resolve("child", catalog, RunRequest("child", session_id="ses-c", run_id="run-c"), parent)
    runtime = {"runtime.session_id": "ses-c", "runtime.run_id": "run-c"}
    assert sent_headers(child, "s", supply_of(runtime=runtime)) == {"X-Root": "ses-p/run-p"}


@pytest.mark.promise("CHILD-WITHIN-PARENT", "LOCK-HOLDS")
@pytest.mark.parametrize("flag", ['"locked": true', '"narrow": "list"'])
def test_a_held_header_that_names_the_session_is_inherited_and_does_not_refuse_every_child(flag: str) -> None:
    entry = """{"url": "http://x/mcp", "header_schema": {"X-Root": {%s}},
                "default_headers": {"X-Root": "${AGENT_SESSION_ID}"}}"""
    catalog = family(agent("s"), agent("s"), entry % flag)
    parent = resolve("parent", catalog, RunRequest("parent", session_id="ses-p"))
    child = resolve("child", catalog, RunRequest("child", session_id="ses-c"), parent)
    assert sent_headers(child, "s", supply_of(runtime={"runtime.session_id": "ses-c"})) == {"X-Root": "ses-p"}


@pytest.mark.promise("CHILD-WITHIN-PARENT")
def test_a_merged_header_of_the_parent_is_not_merged_into_again() -> None:
    entry = """{"url": "http://x/mcp", "header_schema": {"X-J": {"type": "json", "merge": "shallow"}},
                "default_headers": {"X-J": {"a": 1}}}"""
    catalog = family(agent("s", headers={"X-J": {"b": 2}}), agent("s", headers={"X-J": {"c": 3}}), entry)
    parent = resolve("parent", catalog, RunRequest("parent"))
    child = resolve("child", catalog, RunRequest("child"), parent)
    assert blank_headers(parent, "s") == blank_headers(child, "s") == {"X-J": '{"a":1,"b":2}'}


@pytest.mark.promise("RESOLVE-EXPLAINED")
def test_explain_says_that_the_parent_gave_a_value_and_from_whom_it_had_it() -> None:
    catalog = family(agent("s", headers={"X-S": "p"}, tools=["read"]), agent("s", headers={"X-S": "c"}))
    run = a_run('{"agent_name": "parent", "session_id": "ses-p"}')
    plan = resolve("child", catalog, RunRequest("child"), resolve("parent", catalog, run))
    server = explain(plan).servers[0]
    assert str(server.headers[0].origin) == (
        "parent 'parent' (ses-p), which had it from agent 'parent' (agents/parent.json)"
    )
    assert [value for value, _ in server.headers[0].overruled] == ["c"]
    tools = {tool.name: tool.gate for tool in server.tools or ()}
    assert tools["write"].startswith("not in its include list [read] of parent 'parent' (ses-p)")


@pytest.mark.promise("ALIAS-RULES")
def test_one_alias_that_means_two_servers_is_refused() -> None:
    capabilities: dict[str, JsonValue] = {"capabilities": ["c"]}
    catalog = a_catalog(
        {"s": ENTRY, "t": ENTRY},
        {"a": agent("x", ref="t") | capabilities},
        {"c": '{"mcpServers": {"x": {"ref": "s"}}}'},
    )
    with pytest.raises(Refused) as refused:
        resolve("a", catalog)
    assert codes_of(refused.value) == ["alias_conflict"]
    assert "capability 'c'" in str(refused.value)


@pytest.mark.promise("ALIAS-RULES")
def test_equal_inline_definitions_of_two_levels_are_one_server() -> None:
    server = MCPServer.http("x", "http://x/mcp")
    one = Agent("a", servers={"x": InlineServer(server, {"X-S": "1"})})
    assert blank_headers(resolve(one, Catalog()), "x") == {"X-S": "1"}


@pytest.mark.promise("ALIAS-RULES")
def test_headers_for_a_stdio_server_or_for_an_alias_that_is_not_there_are_refused() -> None:
    catalog = a_catalog({"s": '{"command": "npx"}'}, {"a": agent("s")})
    for headers, code in (({"s": {"X-A": "1"}}, "invalid_server"), ({"other": {"X-A": "1"}}, "unknown_alias")):
        with pytest.raises(Refused) as refused:
            resolve("a", catalog, RunRequest("a", mcp_headers=headers))
        assert codes_of(refused.value) == [code]
