"""Tool search: three tools instead of a list, over exactly the agent's own, with the same judgement and record."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outfitter.calls import META_TOOLS
from outfitter.catalog import (
    Agent,
    Effect,
    InlineServer,
    MCPServer,
    SearchMode,
    ToolFilter,
    ToolOverride,
    ToolRule,
    ToolSearch,
)
from outfitter.gateway import Governing
from outfitter.storage import LastSeenFolder
from outfitter.testing import Script, ScriptedTool, serve_http
from outfitter.upstream import Message
from tests.gateway.kit import Raw, agent, raw
from tests.gateway.watched import Watched, watched
from tests.prompt.counting import counting_server, starts

pytestmark = pytest.mark.anyio
ALWAYS = ToolSearch(SearchMode.ALWAYS)
SAYS: Message = {"type": "object", "properties": {"text": {"type": "string", "description": "What it says."}}}
ISSUES = Script(
    "issues",
    tools=(
        ScriptedTool("createIssue", "Create an issue in a project.", kind="echo", schema=SAYS),
        ScriptedTool("delete_issue", "Delete an issue.", kind="echo"),
        ScriptedTool("list_labels", "List the labels of a project.", kind="echo"),
    ),
    resources=(),
    prompts=(),
)


def searching(name: str, *servers: MCPServer, search: ToolSearch = ALWAYS, **filters: ToolFilter) -> Agent:
    return replace(agent(name, *servers, **filters), tool_search=search)


async def ask(http: Raw, era: str, method: str, params: Message | None = None) -> Any:  # noqa: ANN401 - any JSON
    if era == "legacy" and "mcp-session-id" not in http.headers:
        await http.handshake()
    _, answer = await (http.modern if era == "modern" else http.legacy)(method, params)
    return answer


async def use(http: Raw, era: str, tool: str, **arguments: object) -> Any:  # noqa: ANN401 - any JSON
    return await ask(http, era, "tools/call", {"name": tool, "arguments": arguments})


def told(answer: Any) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(answer["result"]["content"][0]["text"])


@pytest.mark.promise("SEARCH-THREE")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_an_agent_that_searches_finds_describes_and_calls_its_tools_by_three(tmp_path: Path, era: str) -> None:
    async with serve_http(ISSUES) as served:
        one = searching("a", MCPServer.http("issues", served.url))
        async with watched(tmp_path, one, is_fast=True) as running, raw(running.address.url("a")) as http:
            listed = await ask(http, era, "tools/list")
            assert listed["result"]["tools"] == [dict(tool) for tool in META_TOOLS]
            found = told(await use(http, era, "search_tools", query="make a new issue", limit=2))
            assert found["tools"][0]["name"] == "issues_createIssue"
            assert found["tools"][0]["arguments"] == ["text?"]
            assert (len(found["tools"]), found["searched"]) == (2, 3)
            shown = told(await use(http, era, "describe_tool", name="issues_createIssue"))
            assert shown["inputSchema"]["properties"]["text"]["description"] == "What it says."
            arguments = {"text": "hi"}
            called = await use(http, era, "call_tool", name="issues_createIssue", arguments=arguments)
            direct = await use(http, era, "issues_createIssue", **arguments)
            assert called["result"] == direct["result"]
            assert "hi" in called["result"]["content"][0]["text"]
            by_search, by_name = running.records()[-2:]
    same = ("agent", "outcome", "decision", "shown", "server", "tool", "digest", "bytes_in", "bytes_out")
    assert [by_search[key] for key in same] == [by_name[key] for key in same]
    assert (by_search["shown"], by_search["tool"]) == ("issues_createIssue", "createIssue")


@pytest.mark.promise("G06")
@pytest.mark.promise("G30")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_what_an_agent_does_not_have_is_not_found_described_or_called(tmp_path: Path, era: str) -> None:
    deny = ToolRule(("list_labels",), Effect.DENY, reason="no labels")
    hidden = ("issues_delete_issue", "ISSUES_CREATEISSUE", "createIssue", "issues_cr\u0435ateIssue", "call_tool", "no")
    async with serve_http(ISSUES) as served:
        server = MCPServer.http("issues", served.url)
        one = replace(searching("a", server, issues=ToolFilter(exclude=("delete_issue",))), rules=(deny,))
        plain = replace(one, name="b", tool_search=ToolSearch())
        async with (
            watched(tmp_path, one, plain, is_fast=True) as running,
            raw(running.address.url("a")) as http,
            raw(running.address.url("b")) as other,
        ):
            everything = told(await use(http, era, "search_tools", query="delete issue labels", limit=50))
            assert "issues_delete_issue" not in [tool["name"] for tool in everything["tools"]]
            for name in hidden:
                unknown = {"code": -32602, "message": f"Unknown tool: {name}"}
                assert (await use(http, era, "describe_tool", name=name))["error"] == unknown
                assert (await use(http, era, "call_tool", name=name))["error"] == unknown
                if name.isascii():
                    assert (await use(other, era, name))["error"] == unknown
            denied = await use(http, era, "call_tool", name="issues_list_labels", arguments={})
            assert denied["result"] == (await use(other, era, "issues_list_labels"))["result"]
            assert denied["result"]["isError"]
            assert (await use(http, era, "call_tool", name=1))["result"]["isError"]
            assert (await use(other, era, "search_tools", query="issue"))["error"]["code"] == -32602
            assert served.ledger.requests["tools/call"] == 0


@pytest.mark.promise("SEARCH-COLD")
@pytest.mark.parametrize(
    ("era", "mode"), [("modern", ALWAYS), ("legacy", ALWAYS), ("modern", ToolSearch(SearchMode.AUTO, 10))]
)
async def test_after_a_restart_a_server_is_started_only_for_a_tool_of_its_own(
    tmp_path: Path, era: str, mode: ToolSearch
) -> None:
    log, seen = tmp_path / "starts", tmp_path / "seen"
    async with serve_http(ISSUES) as served:
        one = searching("a", MCPServer.http("issues", served.url), counting_server(log), search=mode)

        def begin(name: str) -> AbstractAsyncContextManager[Watched]:
            return watched(tmp_path / name, one, governing=Governing(last_seen=LastSeenFolder(seen)))

        async with begin("first") as running, raw(running.address.url("a")) as http:
            assert told(await use(http, era, "search_tools", query="issue"))["tools"]
        assert starts(log) == 1, "one that was never seen is asked once"
        hits = served.ledger.hits
        async with begin("then") as running, raw(running.address.url("a")) as http:
            listed = await ask(http, era, "tools/list")
            assert listed["result"]["tools"] == [dict(tool) for tool in META_TOOLS]
            if era == "legacy":  # most clients listen from the beginning
                await http.http.get(http.url, headers={**http.headers, "accept": "text/event-stream"})
            found = told(await use(http, era, "search_tools", query="create issue"))
            assert (found["tools"][0]["name"], found["searched"] > 3) == ("issues_createIssue", True)
            assert (await use(http, era, "call_tool", name="counted_nothing"))["error"]["code"] == -32602
            assert (served.ledger.hits, starts(log)) == (hits, 1), "nothing was reached or started"
            called = await use(http, era, "call_tool", name="issues_createIssue", arguments={"text": "hi"})
            assert not called["result"]["isError"]
            assert (served.ledger.hits > hits, starts(log)) == (True, 1), "only the server of the tool was reached"
            assert (await ask(http, era, "resources/list"))["result"]["resources"]
            assert starts(log) == 2, "it has resources, and they were asked for"


async def test_auto_searches_over_its_threshold_and_lists_below_it(tmp_path: Path) -> None:
    async with serve_http(ISSUES) as served:
        server = InlineServer(
            MCPServer.http("issues", served.url), overrides={"list_labels": ToolOverride(description="Show all marks.")}
        )
        few = Agent("few", servers={"issues": server}, tool_search=ToolSearch(SearchMode.AUTO, 10_000))
        many = replace(few, name="many", tool_search=ToolSearch(SearchMode.AUTO, 50))
        async with (
            watched(tmp_path, few, many, is_fast=True) as running,
            raw(running.address.url("few")) as http,
            raw(running.address.url("many")) as other,
        ):
            names = [tool["name"] for tool in (await ask(http, "modern", "tools/list"))["result"]["tools"]]
            assert names == ["issues_createIssue", "issues_delete_issue", "issues_list_labels"]
            assert len((await ask(other, "modern", "tools/list"))["result"]["tools"]) == 3
            assert (await use(http, "modern", "search_tools", query="x"))["error"]["code"] == -32602
            found = told(await use(other, "modern", "search_tools", query="marks"))
            assert found["tools"][0]["description"] == "Show all marks."


async def test_a_tool_whose_server_is_away_is_still_found_and_says_so_when_it_is_wanted(tmp_path: Path) -> None:
    governing = Governing(last_seen=LastSeenFolder(tmp_path / "seen"))
    async with serve_http(ISSUES) as served:
        one = searching("a", MCPServer.http("issues", served.url))
        async with watched(tmp_path, one, governing=governing) as running, raw(running.address.url("a")) as http:
            await use(http, "modern", "search_tools", query="issue")
    async with watched(tmp_path / "then", one, governing=governing) as running, raw(running.address.url("a")) as http:
        assert told(await use(http, "modern", "search_tools", query="issue"))["tools"]
        for tool in ("describe_tool", "call_tool"):
            gone = (await use(http, "modern", tool, name="issues_createIssue"))["result"]
            assert gone["isError"]
            assert gone["_meta"]["outfitter/outcome"]["server"] == "issues"
        assert (await use(http, "modern", "call_tool", name="issues_no"))["error"][
            "message"
        ] == "Unknown tool: issues_no"
