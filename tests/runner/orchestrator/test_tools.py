"""The tools that an agent starts, follows and stops other agents with, over real HTTP."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.gateway.kit import Raw
from tests.runner.orchestrator.kit import PATIENCE, Said, Stage, stage, until

pytestmark = pytest.mark.anyio
TOOLS = {"list_agents", "start_agent", "resume_agent", "get_agent_status", "get_agent_result", "stop_agent"}


@pytest.mark.promise("ORCHESTRATOR-ERAS")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_one_url_serves_clients_of_both_eras(tmp_path: Path, mode: Any) -> None:  # noqa: ANN401 - the SDK's word
    async with stage(tmp_path) as here:
        session = await here.begin()
        url, headers = here.orchestrator.url_for(session, await here.run_of(session)), {"X-Agent-Session-Id": session}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            assert (client.protocol_version == "2026-07-28") is (mode == "auto")
            listed = (await client.list_tools()).tools
            assert {tool.name for tool in listed} == TOOLS
            assert not any("parent" in str(tool.input_schema) for tool in listed), "the caller is no argument"
            told: list[tuple[float | None, str | None]] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                assert total is None or 0 <= progress <= total
                told.append((total, message))
                if len(told) == 1:
                    (child,) = await here.children(session)
                    await here.play(child, result={"answer": 42})

            done = await client.call_tool("start_agent", {"agent": "worker", "prompt": "think"}, progress_callback=hear)
            assert not done.is_error, done.content
            assert done.structured_content["result"] == {"answer": 42}
            assert told[0] == (600.0, "the agent is pending"), "whoever hears of progress waits longer"


async def test_agents_are_listed_with_what_they_are_for_and_why_not(tmp_path: Path) -> None:
    async with stage(tmp_path, "lead", "worker") as here:
        listed = (await here.call(await here.begin(), "list_agents"))["agents"]
        assert listed == [
            {
                "name": "lead",
                "description": "the lead",
                "why_not": "agent 'lead' stands above itself already: lead → lead",
            },
            {"name": "worker", "description": "the worker"},
        ]


@pytest.mark.promise("ORCHESTRATOR-CALLER")
async def test_the_caller_is_who_the_header_says_and_nobody_else(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        ours, theirs = await here.begin(), await here.begin()
        unknown = await here.call("session-nobody", "list_agents")
        assert unknown.is_error
        assert "not known" in unknown.text
        odd = await here.call("../runs", "list_agents")
        assert odd.is_error
        named = await here.call(ours, "start_agent", agent="worker", prompt="x", parent_session_id=theirs)
        assert named.is_error
        assert "parent_session_id" in named.text
        url = here.orchestrator.url_for(ours, await here.run_of(ours))
        for headers in ({}, {"x-agent-session-id": theirs}, {"x-agent-session-id": f"{ours}, {theirs}"}):
            bound = Raw(url, here.http, headers)
            assert (await bound.modern("tools/list"))[0] == 404, "a URL for one session is no use to another"
        child = (await here.call(ours, "start_agent", agent="worker", prompt="x", mode="poll"))["session_id"]
        assert (await here.served.get(f"/sessions/{child}")).json["parent_id"] == ours


@pytest.mark.promise("ORCHESTRATOR-DOOR")
async def test_strangers_on_this_machine_do_not_come_in(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        session = await here.begin()
        headers = {"x-agent-session-id": session}
        good = here.orchestrator.url_for(session, await here.run_of(session))
        assert good.startswith("http://127.0.0.1:")
        root = good.rpartition("/")[0]
        for url in (root, f"{root}/", f"{root}/{'0' * 64}", f"{good}/", good[:-1], f"{root}/ä"):
            assert (await Raw(url, here.http, headers).modern("tools/list"))[0] == 404, url
        raw = Raw(good, here.http, headers)
        assert (await raw.modern("tools/list"))[0] == 200
        assert (await raw.modern("tools/list", host="evil.example"))[0] == 421
        assert (await raw.modern("tools/list", origin="http://evil.example"))[0] == 403


@pytest.mark.promise("ORCHESTRATOR-DOOR")
async def test_a_url_ends_with_its_run_and_is_no_use_to_another_run_of_its_session(tmp_path: Path) -> None:
    active: set[str] = set()
    async with stage(tmp_path, is_active=active.__contains__) as here:
        session = await here.begin()
        first = await here.run_of(session)
        url = here.orchestrator.url_for(session, first)
        raw = Raw(url, here.http, {"x-agent-session-id": session})
        assert (await raw.modern("tools/list"))[0] == 404, "it is not executed yet"
        active.add(first)
        assert (await raw.modern("tools/list"))[0] == 200
        active.remove(first)
        active.add("run-2")
        assert (await raw.modern("tools/list"))[0] == 404, "its run has ended"
        other = Raw(url.replace(first, "run-2"), here.http, {"x-agent-session-id": session})
        assert (await other.modern("tools/list"))[0] == 404, "another run of the session has a secret of its own"


async def test_an_agent_is_waited_for_and_goes_on_when_that_takes_too_long(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        session = await here.begin()
        first = await here.call(session, "start_agent", agent="worker", prompt="x", timeout=0.05)
        assert first["state"] == "pending"
        assert "get_agent_result" in first["note"]
        assert "result" not in first.shown
        asked = {"session_id": first["session_id"]}
        assert (await here.call(session, "get_agent_status", **asked))["state"] == "pending"
        assert (await here.call(session, "get_agent_result", **asked))["state"] == "pending"
        said: list[Said] = []

        async def read() -> None:
            said.append(await here.call(session, "get_agent_result", **asked, wait=PATIENCE))

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await here.play(first["session_id"], "failed", error={"code": "boom", "message": "it\x1b[31m broke"})
        assert said[0]["state"] == "failed"
        assert said[0]["error"] == {"code": "boom", "message": "it\\x1b[31m broke"}


@pytest.mark.promise("ORCHESTRATOR-KIN")
async def test_a_session_sees_reads_and_stops_only_what_stands_below_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        ours, theirs = await here.begin(), await here.begin()
        child = (await here.call(ours, "start_agent", agent="worker", prompt="x", mode="poll"))["session_id"]
        grandchild = (await here.call(child, "start_agent", agent="helper", prompt="x", mode="poll"))["session_id"]
        foreign = (await here.call(theirs, "start_agent", agent="worker", prompt="x", mode="poll"))["session_id"]
        listed = (await here.call(ours, "get_agent_status"))["agents"]
        assert [(one["session_id"], one["children"]) for one in listed] == [(child, [grandchild])]
        assert (await here.call(ours, "get_agent_status", session_id=grandchild))["agent"] == "helper"
        no_such = await here.call(ours, "get_agent_status", session_id="session-none")
        for tool, more in (
            ("get_agent_status", {}), ("get_agent_result", {}), ("stop_agent", {}), ("resume_agent", {"prompt": "x"}),
        ):  # fmt: skip
            for caller, other in ((ours, foreign), (ours, theirs), (ours, ours), (child, ours), (grandchild, child)):
                said = await here.call(caller, tool, session_id=other, **more)
                assert said.is_error
                assert said.text == no_such.text.replace("session-none", other)
        assert {await here.state(one) for one in (ours, theirs)} == {"running"}


async def test_stopping_an_agent_stops_what_it_has_started(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        top = await here.begin()
        child = (await here.call(top, "start_agent", agent="worker", prompt="x", mode="poll"))["session_id"]
        grandchild = (await here.call(child, "start_agent", agent="helper", prompt="x", mode="poll"))["session_id"]
        said = await here.call(top, "stop_agent", session_id=child)
        assert (said["state"], said["stopped"]) == ("stopped", [child, grandchild])
        assert (await here.state(grandchild), await here.state(top)) == ("stopped", "running")
        again = await here.call(top, "stop_agent", session_id=child)
        assert (again["state"], again["stopped"]) == ("stopped", [])
        late = await here.call(child, "start_agent", agent="clerk", prompt="x", mode="poll")
        assert late.is_error
        assert "the parent session is stopped" in late.text


async def test_an_agent_that_has_ended_goes_on_with_another_prompt(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        top = await here.begin()
        child = (await here.call(top, "start_agent", agent="worker", prompt="one", mode="poll"))["session_id"]
        early = await here.call(top, "resume_agent", session_id=child, prompt="two", mode="poll")
        assert early.is_error
        assert "the session is pending" in early.text
        await here.play(child, result="first")
        said: list[Said] = []

        async def resume() -> None:
            said.append(await here.call(top, "resume_agent", session_id=child, prompt="two", timeout=PATIENCE))

        async with anyio.create_task_group() as group:
            group.start_soon(resume)
            await until(partial(_is_in, here, child, "pending"))
            await here.play(child, result="second")
        assert (said[0]["session_id"], said[0]["result"]) == (child, "second")
        assert [run["prompt"] for run in await here.runs(child)] == ["one", "two"]


async def _is_in(here: Stage, session: str, state: str) -> bool:
    return await here.state(session) == state


async def test_what_an_agent_asks_wrongly_is_told_in_words(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        session = await here.begin()
        wrong: list[tuple[str, dict[str, object], str]] = [
            ("start_agent", {"prompt": "x"}, "agent"),
            ("start_agent", {"agent": "worker", "prompt": ""}, "length >= 1"),
            ("start_agent", {"agent": "worker", "prompt": "x", "mode": "later"}, "mode"),
            ("start_agent", {"agent": "worker", "prompt": "x", "mode": "poll", "timeout": 3}, "is for the mode sync"),
            ("start_agent", {"agent": "worker", "prompt": "x", "timeout": -1}, "timeout"),
            ("start_agent", {"agent": "worker", "prompt": "x" * 300_000, "mode": "poll"}, "longer than"),
            ("start_agent", {"agent": "nobody", "prompt": "x", "mode": "poll"}, "nobody"),
            ("start_agent", {"agent": "worker", "prompt": "x", "mcp_headers": {}}, "mcp_headers"),
            ("get_agent_result", {"session_id": "../../runs"}, "no session"),
            ("shutdown", {}, "no tool"),
        ]
        for tool, arguments, words in wrong:
            said = await here.call(session, tool, **arguments)
            assert said.is_error, (tool, arguments)
            assert words in said.text, said.text
        assert await here.children(session) == []
