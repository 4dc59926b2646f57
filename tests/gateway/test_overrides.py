"""One tool, shown otherwise to one agent: other words, arguments filled in, arguments that it does not have."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from outfitter.catalog import (
    Agent,
    Effect,
    InlineServer,
    MCPServer,
    ToolOverride,
    ToolRule,
    apply_override,
)
from outfitter.testing import Script, ScriptedTool, serve_http
from tests.gateway.kit import Raw, raw
from tests.gateway.watched import Watched, watched

pytestmark = pytest.mark.anyio
TEXT = {"type": "string"}
SEARCH = ScriptedTool(
    "search",
    "Searches",
    {
        "type": "object",
        "properties": {"query": TEXT, "limit": {"type": "integer"}, "tenant": TEXT},
        "required": ["query", "limit", "tenant"],
    },
    "echo",
    extra={"annotations": {"readOnlyHint": True}},
)
REGION = ScriptedTool("region", "Goes by header", {"type": "object", "properties": {
    "region": {**TEXT, "x-mcp-header": "Region"}, "text": TEXT}}, "echo")  # fmt: skip
SCRIPT = Script("x", tools=(SEARCH, REGION))
OVERRIDE = ToolOverride("Find", "Finds documents of the team", {"limit": 5, "tenant": "blue"}, ("tenant",))


def test_an_override_lays_other_words_and_arguments_over_a_definition_and_leaves_the_rest() -> None:
    before = SEARCH.definition()
    shown = apply_override(before, OVERRIDE)
    assert (shown["title"], shown["description"]) == ("Find", "Finds documents of the team")
    assert shown["inputSchema"] == {
        "type": "object",
        "properties": {"query": TEXT, "limit": {"type": "integer", "default": 5}},
        "required": ["query"],
    }
    assert shown["annotations"] == {"readOnlyHint": True}
    assert before == SEARCH.definition()
    assert apply_override(before, ToolOverride()) == before
    assert apply_override({"name": "bare"}, ToolOverride(hidden=("a",)))["inputSchema"] == {}


@asynccontextmanager
async def _served(folder: Path, **overrides: ToolOverride) -> AsyncGenerator[tuple[Watched, Raw, Raw]]:
    """A gateway with two agents, of which the first has overrides."""
    async with serve_http(SCRIPT) as served:
        server = MCPServer.http("x", served.url)
        rules = (ToolRule(tools=("search",), effect=Effect.DENY, arguments={"/tenant": ("red",)}),)
        agents = (
            Agent("a", servers={"x": InlineServer(server, overrides=overrides)}, rules=rules),
            Agent("b", servers={"x": InlineServer(server)}),
        )
        async with (
            watched(folder, *agents, is_fast=True) as running,
            raw(running.address.url("a")) as first,
            raw(running.address.url("b")) as second,
        ):
            yield running, first, second


async def _call(http: Raw, name: str, **arguments: object) -> dict[str, Any]:
    _, answer = await http.modern("tools/call", {"name": name, "arguments": arguments})
    return answer["result"]


async def _shown(http: Raw) -> dict[str, Any]:
    _, answer = await http.modern("tools/list")
    return {tool["name"]: tool for tool in answer["result"]["tools"]}


@pytest.mark.promise("OVERRIDE-SHOWN")
async def test_one_agent_sees_the_override_and_the_other_what_the_server_says(tmp_path: Path) -> None:
    async with _served(tmp_path, search=OVERRIDE) as (_, first, second):
        mine, theirs = (await _shown(first))["x_search"], (await _shown(second))["x_search"]
    assert (mine["title"], list(mine["inputSchema"]["properties"])) == ("Find", ["query", "limit"])
    assert mine["inputSchema"]["required"] == ["query"]
    assert theirs == {**SEARCH.definition(), "name": "x_search"}


@pytest.mark.promise("OVERRIDE-ARGUMENTS")
async def test_arguments_are_completed_before_they_are_sent_and_a_hidden_one_cannot_be_given(tmp_path: Path) -> None:
    async with _served(tmp_path, search=OVERRIDE) as (running, first, second):
        for _ in range(3):  # also where a fast lane would take over
            found = await _call(first, "x_search", query="q")
            assert found["structuredContent"] == {"query": "q", "limit": 5, "tenant": "blue"}
        assert (await _call(first, "x_search", query="q", limit=9))["structuredContent"]["limit"] == 9
        refused = await _call(first, "x_search", query="q", tenant="red")
        assert refused["isError"] is True
        assert "has no argument 'tenant'" in refused["content"][0]["text"]
        plain = await _call(second, "x_search", query="q", tenant="red")
        assert plain["structuredContent"] == {"query": "q", "tenant": "red"}
        lanes = [record.get("lane") for record in running.records() if record["agent"] == "a"]
    assert "fast" not in lanes


@pytest.mark.promise("OVERRIDE-ARGUMENTS")
async def test_rules_judge_the_arguments_as_they_are_sent(tmp_path: Path) -> None:
    red = ToolOverride(defaults={"tenant": "red"}, hidden=("tenant",))
    async with _served(tmp_path, search=red) as (_, first, _second):
        refused = await _call(first, "x_search", query="q", limit=1)
    assert "was refused" in refused["content"][0]["text"]


@pytest.mark.promise("OVERRIDE-ARGUMENTS")
async def test_a_hidden_argument_that_travels_as_a_header_is_filled_in_for_the_server_alone(tmp_path: Path) -> None:
    override = ToolOverride(defaults={"region": "eu"}, hidden=("region",))
    async with _served(tmp_path, region=override) as (_, first, _second):
        assert (await _call(first, "x_region", text="t"))["structuredContent"] == {"text": "t", "region": "eu"}


@pytest.mark.promise("OVERRIDE-SHOWN")
async def test_a_tool_with_other_words_only_stays_in_the_fast_lane(tmp_path: Path) -> None:
    async with _served(tmp_path, region=ToolOverride(title="R"), search=ToolOverride(title="S")) as (running, first, _):
        for _ in range(4):
            assert json.loads((await _call(first, "x_search", query="q"))["content"][0]["text"]) == {"query": "q"}
        assert "fast" in {record.get("lane") for record in running.records()}
