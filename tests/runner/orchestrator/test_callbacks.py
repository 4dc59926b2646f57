"""Results that come back by themselves: each exactly once, joined, and through restarts."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from outfitter.basics import Secret
from outfitter.runner import GivenToken, Orchestrator, OrchestratorOptions
from tests.coordinator.api.kit import Served, service
from tests.gateway.kit import Raw
from tests.runner.orchestrator.kit import (
    Present,
    Stage,
    cable,
    call,
    orchestrating,
    play,
    stage,
    take,
    until,
    write_agents,
)

pytestmark = [pytest.mark.anyio, pytest.mark.promise("ORCHESTRATOR-CALLBACK")]


async def _has_runs(here: Stage, session: str, count: int) -> bool:
    return len(await here.runs(session)) >= count


async def _start(here: Stage, parent: str, agent: str = "worker") -> str:
    said = await here.call(parent, "start_agent", agent=agent, prompt="x", mode="callback")
    return said["session_id"]


def _results(run: dict[str, Any]) -> dict[str, Any]:
    assert run["type"] == "resume_session"
    return {one["session_id"]: one for one in json.loads(run["prompt"].partition("\n")[2])}


async def _settled(ledger: Path) -> bool:
    with closing(sqlite3.connect(ledger)) as database:
        return database.execute("SELECT count(*) FROM owed").fetchone() == (0,)


async def test_a_parent_that_rests_is_resumed_with_the_result(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        top = await here.begin()
        child = await _start(here, top)
        await here.play(top, result="I wait")
        await here.play(child, result={"answer": 'ANSI \x1b[31m " quoted'})
        await until(partial(_has_runs, here, top, 2))
        first, second = await here.runs(top)
        assert (second["state"], second["agent_name"], second["session_id"]) == ("pending", "lead", top)
        told = _results(second)[child]
        assert (told["agent"], told["state"]) == ("worker", "done")
        assert told["result"] == {"answer": 'ANSI \\x1b[31m " quoted'}
        assert second["id"] != first["id"]
        await until(partial(_settled, tmp_path / "state" / "callbacks.sqlite"))
        assert (tmp_path / "state" / "callbacks.sqlite").stat().st_mode & 0o077 == 0


async def test_results_that_are_there_together_go_together_once_the_parent_rests(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        top = await here.begin()
        children = [await _start(here, top) for _ in range(3)]
        late = await _start(here, top, "helper")
        await here.play(children[0], result=0)
        await here.play(children[1], "failed", error={"code": "boom", "message": "no"})
        await here.play(children[2], result=2)
        assert len(await here.runs(top)) == 1, "the parent is at work"
        await here.play(top)
        await until(partial(_has_runs, here, top, 2))
        told = _results((await here.runs(top))[1])
        assert list(told) == children
        assert [told[child]["state"] for child in children] == ["done", "failed", "done"]
        assert told[children[1]]["error"] == {"code": "boom", "message": "no"}
        await here.play(late, result="late")
        await here.play(top)
        await until(partial(_has_runs, here, top, 3))
        assert list(_results((await here.runs(top))[2])) == [late]
        await until(partial(_settled, tmp_path / "state" / "callbacks.sqlite"))
        assert len(await here.runs(top)) == 3


async def test_a_child_that_is_resumed_in_the_mode_callback_calls_back_too(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        top = await here.begin()
        child = (await here.call(top, "start_agent", agent="worker", prompt="x", mode="poll"))["session_id"]
        await here.play(child, result="one")
        await here.call(top, "resume_agent", session_id=child, prompt="more", mode="callback")
        await here.play(top)
        await here.play(child, result="two")
        await until(partial(_has_runs, here, top, 2))
        assert _results((await here.runs(top))[1])[child]["result"] == "two"


async def test_a_parent_that_was_stopped_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "outfitter.runner")
    async with stage(tmp_path) as here:
        top = await here.begin()
        child = await _start(here, top)
        await here.play(top, "stopped")
        await here.play(child, result="too late")
        await until(partial(_settled, tmp_path / "state" / "callbacks.sqlite"))
        assert len(await here.runs(top)) == 1
    assert "is not told of 1 results" in caplog.text


async def test_a_start_that_is_refused_owes_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        top = await here.begin()
        assert (await here.call(top, "start_agent", agent="nobody", prompt="x", mode="callback")).is_error
        await until(partial(_settled, tmp_path / "state" / "callbacks.sqlite"))


async def test_a_parent_whose_credentials_nobody_holds_any_more_is_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "outfitter.runner")
    async with stage(tmp_path, "worker") as here:
        schema = {"X-Api-Key": {"type": "string", "sensitive": True}}
        await here.served.must("/mcp-servers", {"id": "x", "url": "http://127.0.0.1:9/mcp", "header_schema": schema})
        await here.served.must("/agents", {"name": "lead", "mcpServers": {"x": {"ref": "x"}}})
        top = await here.begin(credentials={"x": {"api_key": "canary-of-a-run"}})
        child = await _start(here, top)
        await here.play(top)
        await here.play(child, result="done")
        await until(partial(_settled, tmp_path / "state" / "callbacks.sqlite"))
        assert len(await here.runs(top)) == 1
    assert "[refused]" in caplog.text
    assert "canary-of-a-run" not in caplog.text


async def test_a_runner_that_comes_back_delivers_what_it_owed(tmp_path: Path) -> None:
    async with service(tmp_path) as served:
        await write_agents(served, "lead", "worker", "helper")
        async with orchestrating(served, tmp_path / "state") as first:
            here = Stage(served, first, served.session)
            top = await here.begin()
            children = [await _start(here, top), await _start(here, top, "helper")]
        for session in (*children, top):
            await here.play(session, result="while nobody heard")
        async with orchestrating(served, tmp_path / "state"), orchestrating(served, tmp_path / "state"):
            await until(partial(_has_runs, here, top, 2))
            await until(partial(_settled, tmp_path / "state" / "callbacks.sqlite"))
        assert set(_results((await here.runs(top))[1])) == set(children)
        async with orchestrating(served, tmp_path / "state"):
            await here.play(top)
        assert len(await here.runs(top)) == 2


async def test_a_coordinator_that_is_restarted_loses_no_result(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with service(tmp_path) as first:
        await write_agents(first, "lead", "worker")
        runner = await first.as_role("runner")
    async with cable(None) as line:
        options = OrchestratorOptions(line.url, state, patience=1.0)
        async with Orchestrator(options, GivenToken(Secret(runner.token or "")), Present()) as orchestrator:
            async with service(tmp_path) as served:
                line.target = served.url
                here = Stage(replace(served, token=first.token), orchestrator, served.session)
                top = await here.begin()
                child = await _start(here, top)
                await here.play(top)
                line.target = None
                line.cut()
            async with service(tmp_path) as served:
                here = Stage(replace(served, token=first.token), orchestrator, served.session)
                await here.play(child, result="it survived")
                line.target = served.url
                await until(partial(_has_runs, here, top, 2))
                await until(partial(_settled, state / "callbacks.sqlite"))
                assert _results((await here.runs(top))[1])[child]["result"] == "it survived"
                assert len(await here.runs(top)) == 2


async def test_a_runner_whose_token_was_taken_back_keeps_what_it_owes(tmp_path: Path) -> None:
    async with service(tmp_path) as served:
        await write_agents(served, "lead", "worker")
        async with orchestrating(served, tmp_path / "state") as orchestrator:
            here = Stage(served, orchestrator, served.session)
            top = await here.begin()
            child = await _start(here, top)
            listed = (await served.get("/tokens")).json["items"]
            (token,) = [one["id"] for one in listed if one["role"] == "runner"]
            assert (await served.ask("DELETE", f"/tokens/{token}")).status in {200, 204}
            for session in (top, child):
                await here.play(session, result="kept")
            refused = await here.call(top, "get_agent_result", session_id=child)
            assert refused.is_error
            assert "a valid token is needed" in refused.text
        async with orchestrating(served, tmp_path / "state"):
            await until(partial(_has_runs, here, top, 2))
        assert _results((await here.runs(top))[1])[child]["result"] == "kept"


@pytest.mark.parametrize("lost", [b"resume_session", b"start_session"])
async def test_an_answer_that_is_lost_on_its_way_makes_nothing_twice(tmp_path: Path, lost: bytes) -> None:
    async with service(tmp_path) as served, cable(served.url) as line:
        await write_agents(served, "lead", "worker")
        async with orchestrating(served, tmp_path / "state", url=line.url) as orchestrator:
            here = Stage(served, orchestrator, served.session)
            top = await here.begin()
            before = len((await served.get("/runs")).json["items"]) + (lost == b"resume_session")

            async def carried_out() -> None:
                await until(lambda: _are_more(served, before))

            line.carried_out, line.loses_answer_to = carried_out, lost
            child = await _start(here, top)
            await here.play(top)
            await here.play(child, result="once")
            await until(partial(_has_runs, here, top, 2))
            await until(partial(_settled, tmp_path / "state" / "callbacks.sqlite"))
            assert line.lost == 1
            assert len(await here.runs(top)) == 2
            assert await here.children(top) == [child]


async def _are_more(served: Served, count: int) -> bool:
    return len((await served.get("/runs")).json["items"]) > count


async def test_a_call_waits_for_a_coordinator_that_is_away_for_a_moment(tmp_path: Path) -> None:
    async with service(tmp_path) as served, cable(None) as line:
        await write_agents(served, "lead", "worker")
        run = (await served.must("/runs", {"agent_name": "lead", "prompt": "x"})).json
        await take(served, run["id"])
        async with orchestrating(served, tmp_path / "state", url=line.url) as orchestrator:
            session = run["session_id"]
            raw = Raw(orchestrator.url_for(session, run["id"]), served.session, {"x-agent-session-id": session})
            said: list[str] = []

            async def start() -> None:
                said.append((await call(raw, "start_agent", {"agent": "worker", "prompt": "x"}))["result"])

            async with anyio.create_task_group() as group:
                group.start_soon(start)
                await anyio.lowlevel.checkpoint()
                line.target = served.url
                here = Stage(served, orchestrator, served.session)
                await until(lambda: _has_child(here, session))
                (child,) = await here.children(session)
                await play(served, child, "done", "here")
            assert said == ["here"]


async def _has_child(here: Stage, session: str) -> bool:
    return bool(await here.children(session))
