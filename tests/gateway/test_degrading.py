"""Servers that are away: the model is told what to do instead, the others work, and they come back by themselves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
import pytest

from outfitter.catalog import MCPServer, TimeLimits
from outfitter.testing import Crash, Hang, Script, When, serve_http, stdio_server
from outfitter.upstream import Message, Patience, State
from tests.gateway.kit import Raw, agent, client, gateway, raw
from tests.gateway.test_operation import outfitter, started
from tests.gateway.watched import until, watched
from tests.upstream.real import children_running
from tests.upstream.stage import QUICK

pytestmark = pytest.mark.anyio
FALLBACK = "use the `gh` CLI"
DEAD = MCPServer.http("gh", "http://127.0.0.1:9/mcp", fallback=FALLBACK)
SHORT = replace(QUICK, cooldown=0.1)
ERAS = ("legacy", "modern")
Era = Literal["legacy", "modern"]


async def called(http: Raw, name: str, era: Era = "modern", **arguments: object) -> dict[str, Any]:
    """The result of a call; an error of the protocol is none."""
    ask = http.modern if era == "modern" else http.legacy
    _, answer = await ask("tools/call", {"name": name, "arguments": {"text": "hi", **arguments}})
    return answer["result"]


def works(result: dict[str, Any]) -> bool:
    """Whether a call did what it should."""
    return not result.get("isError") and "hi" in str(result["content"])


def outcome(result: dict[str, Any]) -> dict[str, Any]:
    """What a program is told of a call that did not work."""
    assert result["isError"] is True, result
    assert "structuredContent" not in result
    return result["_meta"]["outfitter/outcome"]


async def told_down(http: Raw, name: str, era: Era = "modern") -> dict[str, Any]:
    """The answer once the server rests."""
    with anyio.fail_after(60):
        while outcome(found := await called(http, name, era))["code"] != "upstream_down":
            assert FALLBACK in str(found), "calls that find it dying are told the same"
    return found


# ── a server that goes while it is used ──


@pytest.mark.promise("DEGRADE-TOLD", "DEGRADE-HONEST")
@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize("era", ERAS)
async def test_calls_of_a_server_that_went_away_say_what_to_do_and_when_it_is_tried(
    tmp_path: Path, era: Era, *, is_fast: bool
) -> None:
    async with serve_http(Script("other")) as other, AsyncExitStack() as stack:
        gone = await stack.enter_async_context(serve_http(Script("gh")))
        both = agent("a", MCPServer.http("gh", gone.url, fallback=FALLBACK), MCPServer.http("other", other.url))
        async with watched(tmp_path, both, is_fast=is_fast) as running, raw(running.address.url("a")) as http:
            if era == "legacy":
                await http.handshake()
            for name in ("gh_echo", "gh_echo", "other_echo"):
                assert works(await called(http, name, era))
            await stack.aclose()
            first = await told_down(http, "gh_echo", era)
            found, (said,) = outcome(first), first["content"]
            assert (found["server"], found["fallback"]) == ("gh", FALLBACK)
            assert 0 < found["retryAfter"] <= QUICK.cooldown
            assert "The MCP server 'gh' is not available: " in said["text"]
            assert f"Instead: {FALLBACK}. It will be tried again in " in said["text"]
            left = int(re.findall(r"in (\d+) s", said["text"])[-1])
            assert 0 <= left - found["retryAfter"] <= 1.1
            again = outcome(await told_down(http, "gh_echo", era))
            assert again["retryAfter"] <= found["retryAfter"], "the time that is really left"
            assert works(await called(http, "other_echo", era)), "the others work"
            last = [record for record in running.records() if record["shown"] == "gh_echo"][-1]
            assert (last["outcome"], last["code"], last["server"]) == ("unavailable", "upstream_down", "gh")


@pytest.mark.promise("DEGRADE-TOLD")
@pytest.mark.parametrize("fault", [Crash(When(name="echo", times=1)), Hang(When(name="echo", times=1))])
async def test_a_call_that_is_lost_or_late_is_told_with_the_fallback_and_in_doubt(fault: Crash | Hang) -> None:
    limits = TimeLimits(call=1.0) if isinstance(fault, Hang) else TimeLimits()
    server = replace(stdio_server(Script("gh", faults=(fault,))), fallback=FALLBACK, limits=limits)
    async with gateway(agent("a", server), patience=QUICK) as running, raw(running.url("a")) as http:
        result = await called(http, "gh_echo")
        assert outcome(result)["code"] == ("upstream_lost" if isinstance(fault, Crash) else "upstream_timeout")
        text = result["content"][0]["text"]
        assert "The call may have been carried out all the same" in text
        assert f"Instead: {FALLBACK}. The next call tries it again." in text


@pytest.mark.promise("DEGRADE-LISTS")
async def test_the_tools_of_a_server_that_went_away_stay_listed_and_its_other_things_say_why() -> None:
    async with AsyncExitStack() as stack:
        gone = await stack.enter_async_context(serve_http(Script("gh")))
        one = agent("a", MCPServer.http("gh", gone.url, fallback=FALLBACK))
        async with gateway(one) as running, raw(running.url("a")) as http:
            before = (await http.modern("tools/list"))[1]["result"]["tools"]
            (resource, *_) = (await http.modern("resources/list"))[1]["result"]["resources"]
            await stack.aclose()
            (line,) = running.desk.exchange.lines()
            line.hear({"method": "notifications/tools/list_changed"})
            after = (await http.modern("tools/list"))[1]["result"]["tools"]
            assert after == before
            await told_down(http, "gh_echo")
            _, answer = await http.modern("resources/read", {"uri": resource["uri"]})
            assert answer["error"]["data"]["code"] == "upstream_down"
            assert FALLBACK in answer["error"]["message"]


# ── a server that is away at the start ──


@pytest.mark.promise("DEGRADE-START", "F14")
@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_is_down_at_the_start_is_skipped_told_and_comes_back_by_itself(
    era: Era, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_http(Script("gh")) as gone:
        port = gone.port
    async with serve_http(Script("other", eras=(era,))) as other:
        absent = replace(DEAD, transport=MCPServer.http("gh", f"http://127.0.0.1:{port}/mcp").transport)
        both = agent("a", absent, MCPServer.http("other", other.url))
        async with gateway(both, patience=SHORT) as running, client(running.url("a")) as connection:
            heard: list[Message] = []
            connection.listen_to(heard.append)
            names = [tool["name"] for tool in await connection.use(lambda link: link.list_tools())]
            assert "other_echo" in names
            assert not [name for name in names if name.startswith("gh")]
            assert "server 'gh' is not available" in caplog.text
            agreement = connection.agreement
            assert agreement is not None
            assert f"Not available now: gh. Instead of 'gh': {FALLBACK}." in agreement.instructions
            # Nobody asks for it from here on: its tools are announced when it is there.
            async with serve_http(Script("gh", eras=(era,)), port=port):
                await until(lambda: any(said.get("method") == "notifications/tools/list_changed" for said in heard))
                with anyio.fail_after(60):
                    while "gh_echo" not in names:
                        names = [tool["name"] for tool in await connection.use(lambda link: link.list_tools())]
                result = await connection.use(lambda link: link.call_tool("gh_echo", {"text": "back"}))
                assert "back" in str(result)


@pytest.mark.promise("DEGRADE-TOLD", "N01", "N02")
async def test_a_tool_of_a_server_that_was_never_there_is_told_as_its_outage_and_no_other_name_is(
    tmp_path: Path,
) -> None:
    async with serve_http(Script("other")) as other:
        both = agent("a", DEAD, MCPServer.http("other", other.url))
        async with watched(tmp_path, both) as running, raw(running.address.url("a")) as http:
            found = await told_down(http, "gh_list_issues")
            assert outcome(found)["server"] == "gh"
            for name in ("db_query", "ghost", "other_nothing"):
                _, answer = await http.modern("tools/call", {"name": name, "arguments": {}})
                assert answer["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
            records = running.records()
            assert (records[0]["outcome"], records[0]["server"]) == ("unavailable", "gh")
            assert [record["outcome"] for record in records[-3:]] == ["unknown"] * 3


async def test_a_server_that_is_away_does_not_slow_the_others_down(tmp_path: Path) -> None:
    async with serve_http(Script("other")) as other:
        both = agent("a", DEAD, MCPServer.http("other", other.url))
        async with watched(tmp_path, both, is_fast=True) as running, raw(running.address.url("a")) as http:
            with anyio.fail_after(60):
                while not [record for record in running.records() if record.get("lane") == "fast"]:
                    assert works(await called(http, "other_echo"))


@pytest.mark.promise("DEGRADE-ALL", "F15")
async def test_with_every_server_down_the_endpoint_still_answers() -> None:
    every = agent("a", DEAD, replace(DEAD, name="db", fallback=""))
    async with gateway(every) as running, raw(running.url("a")) as http:
        await http.handshake()
        for method, key in (("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")):
            _, listed = await http.legacy(method)
            assert listed["result"] == {key: []}
        _, pong = await http.legacy("ping")
        assert pong["result"] == {}
        assert outcome(await called(http, "gh_echo", "legacy"))["code"] == "upstream_down"
        assert outcome(await called(http, "db_echo", "legacy"))["server"] == "db"


# ── how long it was there ──


@pytest.mark.promise("DEGRADE-UPTIME")
async def test_a_program_that_is_killed_is_started_again_unasked_and_its_uptime_shows_it() -> None:
    word = "outfitter.testing.stdio_server"
    async with gateway(agent("a", stdio_server(Script("x")))) as running, client(running.url("a")) as connection:
        connection.listen_to(lambda _: None)
        await connection.use(lambda link: link.call_tool("x_echo", {"text": "hi"}))
        pool = running.desk.exchange.pool
        assert (pool.standings()["x"].share, pool.standings()["x"].failures) == (1.0, 0)
        (process,) = children_running(word)
        os.kill(process, signal.SIGKILL)
        await until(lambda: pool.standings()["x"].failures == 1)
        await until(lambda: all(one.health.state is State.READY for one in pool.connections()))
        standing = pool.standings()["x"]
        assert standing.share is not None
        assert 0 < standing.share < 1
        assert (standing.failures, standing.out_for, standing.next_try) == (1, None, None)
        (again,) = children_running(word)
        assert again != process
        text = running.desk.recorder.metrics.text()
        assert 'outfitter_upstream_failures{server="x"} 1' in text
        assert 'outfitter_upstream_uptime{server="x"} 0.' in text


async def test_a_server_that_nobody_wants_is_neither_up_nor_down() -> None:
    async with gateway(agent("a", DEAD), patience=Patience(cooldown=30)) as running:
        assert running.desk.exchange.pool.standings() == {}
        async with raw(running.url("a")) as http:
            await http.modern("tools/list")
        standing = running.desk.exchange.pool.standings()["gh"]
        assert (standing.share, standing.failures) == (0.0, 1)
        assert standing.out_for is not None
        assert standing.next_try is not None
        assert 0 < standing.next_try <= 30


@pytest.mark.promise("DEGRADE-UPTIME")
async def test_status_shows_uptime_failures_since_when_and_the_next_try(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serve_http(Script("gh")))
        write(tmp_path, {"gh": {"url": served.url, "fallback": FALLBACK}})
        async with started(tmp_path) as process, raw(f"{process.url}/mcp/a") as http:
            assert works(await called(http, "gh_echo"))
            (up,) = (await anyio.to_thread.run_sync(process.news))["servers"]
            assert (up["uptime"], up["failures"], up["down_since"], up["next_try"]) == (1.0, 0, None, None)
            await stack.aclose()
            await told_down(http, "gh_echo")
            (down,) = (await anyio.to_thread.run_sync(process.news))["servers"]
            assert 0 < down["uptime"] < 1
            assert down["failures"] == 1
            assert down["down_since"] > 0
            assert 0 < down["next_try"] <= 60
            said: subprocess.CompletedProcess[str] = await anyio.to_thread.run_sync(outfitter, tmp_path, "status")
            assert re.search(r"gh: not available since \d\d:\d\d:\d\d, tried again in \d+ s", said.stdout), said.stdout
            assert "UPTIME" in said.stdout


def write(folder: Path, servers: dict[str, dict[str, Any]]) -> None:
    """A catalog with these servers, all of them agent ``a``'s."""
    own = {"name": "a", "mcpServers": {name: {"ref": name} for name in servers}}
    documents = {f"mcp-servers/{name}.json": {"name": name, **server} for name, server in servers.items()}
    for place, value in {**documents, "agents/a.json": own}.items():
        path = folder / "outfitter" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
