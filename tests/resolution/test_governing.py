"""What governs calls beside headers and filters: overrides over all levels, who is believed, and what explain says."""

from __future__ import annotations

import pytest

from outfitter.catalog import JsonValue, RunRequest
from outfitter.policy import Allow, Ask
from outfitter.resolution import describe_governing, describe_override, explain, resolve
from tests.shelf import Text, a_catalog

ASK: Text = {
    "mcpServers": {"s": {"ref": "s"}},
    "rules": [{"tools": ["*"], "effect": "ask", "unless_read_only": True, "reason": "a person looks at changes"}],
}


def test_a_later_level_overrides_a_tool_field_by_field_and_hides_nothing_less() -> None:
    catalog = a_catalog(
        {"s": '{"url": "http://x/mcp"}'},
        {
            "a": {
                "capabilities": ["c"],
                "mcpServers": {"s": {"overrides": {"find": {"title": "Look", "defaults": {"limit": 5}, "hidden": []}}}},
            }
        },
        {
            "c": {
                "mcpServers": {
                    "s": {"ref": "s", "overrides": {"find": {"description": "All of it.", "hidden": ["token"]}}}
                }
            }
        },
    )
    found = resolve("a", catalog).servers["s"].overrides["find"]
    assert (found.value.title, found.value.description) == ("Look", "All of it.")
    assert (found.value.defaults, found.value.hidden) == ({"limit": 5}, ("token",))
    assert found.origin.name == "a"
    assert [before.origin.name for before in found.overruled] == ["c"]
    assert describe_override(found.value) == "another title and description; default for limit; token hidden"


def test_what_a_parent_says_of_a_tool_holds_for_its_child() -> None:
    def of(title: str, hidden: list[JsonValue]) -> Text:
        override: dict[str, JsonValue] = {"title": title, "hidden": hidden}
        return {"mcpServers": {"s": {"ref": "s", "overrides": {"find": override}}}}

    catalog = a_catalog({"s": '{"url": "http://x/mcp"}'}, {"parent": of("Mine", ["token"]), "child": of("Yours", [])})
    child = resolve("child", catalog, RunRequest("child"), resolve("parent", catalog, RunRequest("parent")))
    found = child.servers["s"].overrides["find"]
    assert (found.value.title, found.value.hidden) == ("Mine", ("token",))
    assert str(found.origin).startswith("parent 'parent'")


@pytest.mark.parametrize(("trusted", "answer"), [(False, Ask), (True, Allow)])
def test_a_server_is_believed_to_only_read_where_it_is_trusted(trusted: bool, answer: type) -> None:
    entry: Text = {"url": "http://x/mcp", "trusted": trusted}
    planned = resolve("a", a_catalog({"s": entry}, {"a": ASK})).servers["s"]
    assert isinstance(planned.decide("delete", {}, read_only=True), answer)
    assert isinstance(planned.decide("delete", {}), Ask)


def test_explain_says_what_limits_an_agent_and_how_its_servers_are_pinned() -> None:
    agent: Text = {
        "mcpServers": {"s": {"ref": "s", "overrides": {"find": {"hidden": ["token"]}}}},
        "budgets": {
            "concurrent_calls": 4,
            "calls_per_second": 2,
            "calls_per_day": 1000,
            "repeats": 3,
            "per_server": {"s": {"bytes_per_hour": 5}},
            "per_tool": {"s/find": {"tokens_per_run": 7}},
        },
        "tool_search": {"threshold": 900},
        "result_limit": 2048,
    }
    entry = '{"url": "http://x/mcp", "pins": "approve", "trusted": true}'
    explanation = explain(resolve("a", a_catalog({"s": entry}, {"a": agent})))
    assert list(describe_governing(explanation.governed)) == [
        "budget: 4 calls at a time",
        "budget: 2 calls per second",
        "budget: 1,000 calls per day",
        "budget: 5 bytes per hour of s",
        "budget: 7 tokens per run of s/find",
        "budget: the same call 3 times, then it is held to be a loop",
        "tools: searched for when their definitions are over 900 tokens",
        "results: above 2,048 bytes kept aside, with a preview",
    ]
    shown = explanation.to_json()
    assert shown["tool_search"] == {"mode": "auto", "threshold": 900}
    servers = shown["servers"]
    assert isinstance(servers, list)
    server = servers[0]
    assert isinstance(server, dict)
    assert (server["pins"], server["trusted"]) == ("approve", True)
    assert isinstance(server["overrides"], dict)
    assert server["overrides"].keys() == {"find"}
