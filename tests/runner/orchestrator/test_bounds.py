"""Agents that start agents end somewhere, and never get more than whoever started them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.errors import Forbidden
from outfitter.runner import Bounds
from tests.runner.orchestrator.kit import Said, stage

pytestmark = pytest.mark.anyio


@pytest.mark.promise("ORCHESTRATOR-CYCLE")
async def test_an_agent_does_not_start_itself_nor_whoever_started_it(tmp_path: Path) -> None:
    """N09."""
    async with stage(tmp_path, "lead", "worker") as here:
        top = await here.begin("lead")
        itself = await here.call(top, "start_agent", agent="lead", prompt="again", mode="poll")
        assert itself.is_error
        assert "[forbidden] agent 'lead' stands above itself already: lead → lead" in itself.text
        child = (await here.call(top, "start_agent", agent="worker", prompt="x", mode="poll"))["session_id"]
        back = await here.call(child, "start_agent", agent="lead", prompt="x", mode="callback")
        assert back.is_error
        assert "lead → worker → lead" in back.text
        assert await here.children(child) == []


async def test_a_self_spawn_loop_that_is_allowed_ends_at_the_depth_cap(tmp_path: Path) -> None:
    """N09."""
    async with stage(tmp_path, "lead", bounds=Bounds(deepest=3, same_agent=100)) as here:
        session, depth = await here.begin(), 1
        while True:
            said = await here.call(session, "start_agent", agent="lead", prompt="again", mode="poll")
            if said.is_error:
                break
            session, depth = said["session_id"], depth + 1
        assert depth == 3
        assert "at most 3 agents may stand in a row: lead → lead → lead → lead" in said.text


async def test_the_coordinator_has_a_depth_that_no_runner_gets_past(tmp_path: Path) -> None:
    async with stage(tmp_path, "lead", bounds=Bounds(deepest=100, same_agent=100)) as here:
        session, depth = await here.begin(), 1
        while not (said := await here.call(session, "start_agent", agent="lead", prompt="x", mode="poll")).is_error:
            session, depth = said["session_id"], depth + 1
        assert depth == 9
        assert "sessions are at most 8 deep" in said.text


async def test_a_session_starts_a_limited_number_also_when_it_starts_them_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path, "lead", "worker", bounds=Bounds(most_children=3)) as here:
        top, said = await here.begin(), list[Said]()

        async def start() -> None:
            said.append(await here.call(top, "start_agent", agent="worker", prompt="x", mode="poll"))

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(start)
        assert 1 <= len(await here.children(top)) <= 3
        for _ in range(3):
            await start()
        assert len(await here.children(top)) == 3
        assert "a session starts at most 3 others" in said[-1].text


def test_the_rule_is_about_the_row_and_not_about_siblings() -> None:
    bounds = Bounds(deepest=3, same_agent=2)
    bounds.check(["a", "b"], "a")
    for chain, agent in ((["a", "b", "a"], "a"), (["a", "b", "c"], "d")):
        with pytest.raises(Forbidden):
            bounds.check(chain, agent)


SERVER: dict[str, Any] = {
    "id": "jira",
    "url": "http://127.0.0.1:9/mcp",
    "header_schema": {
        "X-Jira-Projects": {"type": "string", "narrow": "list"},
        "X-Team": {"type": "string"},
    },
}


@pytest.mark.promise("ORCHESTRATOR-INHERIT")
async def test_a_child_that_wants_more_gets_what_it_shares_with_its_parent_and_explain_says_so(tmp_path: Path) -> None:
    """N10."""
    async with stage(tmp_path, "clerk") as here:
        await here.served.must("/mcp-servers", SERVER)
        for agent, projects, team, tools in (
            ("lead", "ALPHA,BETA", "alpha", ["read", "list"]),
            ("greedy", "BETA,GAMMA", "gamma", ["read", "write"]),
        ):
            headers = {"X-Jira-Projects": projects, "X-Team": team}
            uses = {"jira": {"ref": "jira", "headers": headers, "tools": tools}}
            await here.served.must("/agents", {"name": agent, "mcpServers": uses})
        top = await here.begin("lead")
        child = (await here.call(top, "start_agent", agent="greedy", prompt="x", mode="poll"))["session_id"]
        (server,) = (await here.served.get(f"/sessions/{child}")).json["plan"]["servers"]
        headers = {header["name"]: header for header in server["headers"]}
        assert {name: header["value"] for name, header in headers.items()} == {
            "X-Jira-Projects": "BETA",
            "X-Team": "alpha",
        }
        assert "1 asked for and not given" in headers["X-Jira-Projects"]["note"]
        for header, wanted in (("X-Jira-Projects", "BETA,GAMMA"), ("X-Team", "gamma")):
            assert headers[header]["origin"]["level"] == "parent"
            assert headers[header]["origin"]["where"] == top
            assert [(one["value"], one["origin"]["name"]) for one in headers[header]["overruled"]] == [
                (wanted, "greedy")
            ]
        filters = [(set(one["include"]), one["origin"]["level"]) for one in server["filters"]]
        assert filters == [({"read", "write"}, "agent"), ({"read", "list"}, "parent")], (
            "every filter must let a tool through"
        )
