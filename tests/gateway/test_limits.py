"""How much one agent may ask, and what it hears when it asks more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from outfitter.catalog import Agent, Budgets, Catalog, MCPServer
from outfitter.gateway import Limits, Turnstile
from outfitter.resolution import RunPlan, resolve
from outfitter.testing import Hang, Script, When, serve_http
from tests.gateway.kit import MODERN, agent, raw
from tests.gateway.watched import until, watched

pytestmark = pytest.mark.anyio
ECHO = {"name": "echo", "arguments": {"text": "hi"}}


def limited(url: str, most: int | None = None, rate: float | None = None) -> Agent:
    return replace(agent("a", MCPServer.http("x", url)), budgets=Budgets(most, rate))


def plan(most: int | None = None, rate: float | None = None) -> RunPlan:
    return resolve("a", Catalog(agents={"a": Agent("a", budgets=Budgets(most, rate))}))


@pytest.mark.promise("LIMIT-AGENT")
async def test_calls_over_the_rate_are_refused_with_a_time_to_wait_and_recorded(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        async with (
            watched(tmp_path, limited(served.url, rate=0.01)) as running,
            raw(running.address.url("a", "x")) as http,
        ):
            assert (await http.modern("tools/call", ECHO))[0] == 200
            routing = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": "echo"}
            status, _, headers = await http.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, **routing)
            assert status == 429
            assert 1 <= int({name.lower(): value for name, value in headers.items()}["retry-after"]) <= 100
            assert (await http.modern("tools/list"))[0] == 200, "only calls are counted"
            await http.handshake()
            _, said = await http.legacy("tools/call", ECHO)
            assert said["error"]["data"]["code"] == "too_many_calls"
            assert said["error"]["data"]["retryAfter"] > 0
        assert [one["outcome"] for one in running.records()] == ["done", "refused", "refused"]
        assert served.ledger.requests["tools/call"] == 1


async def test_calls_over_the_number_at_a_time_are_refused_and_let_in_again_later(tmp_path: Path) -> None:
    script = Script("x", faults=(Hang(When(name="echo", times=1)),))
    async with (
        serve_http(script) as served,
        watched(tmp_path, limited(served.url, most=1)) as running,
        raw(running.address.url("a", "x")) as http,
    ):
        await http.modern("tools/list")
        async with anyio.create_task_group() as group:
            group.start_soon(http.modern, "tools/call", ECHO)
            await until(lambda: running.desk.turnstile.under_way == 1)
            assert (await http.modern("tools/call", ECHO))[0] == 429
            group.cancel_scope.cancel()
        await until(lambda: running.desk.turnstile.under_way == 0)
        assert (await http.modern("tools/call", ECHO))[0] == 200


@pytest.mark.promise("F30")
async def test_above_the_memory_limit_no_new_call_is_taken_until_there_is_room(tmp_path: Path) -> None:
    used, now = [10], [0.0]
    turnstile = Turnstile(most_memory=100, memory=lambda: used[0], clock=lambda: now[0])
    async with (
        serve_http(Script("x")) as served,
        watched(tmp_path, limited(served.url), turnstile=turnstile) as running,
        raw(running.address.url("a", "x")) as http,
    ):
        statuses: list[int] = []
        for used[0] in (10, 200, 50):
            now[0] += 2.0
            statuses.append((await http.modern("tools/call", ECHO))[0])
        assert statuses == [200, 503, 200]
        assert running.records()[1]["code"] == "overloaded"


async def test_the_rate_fills_up_again_with_time_and_holds_no_more_than_a_second() -> None:
    now = [100.0]
    turnstile = Turnstile(Limits(calls_per_second=2), clock=lambda: now[0])

    def calls() -> int:
        count = 0
        while turnstile.wait_of(plan()) is None:
            turnstile.enter(plan())
            turnstile.leave(plan())
            count += 1
        return count

    assert calls() == 2
    now[0] += 0.5
    assert calls() == 1
    now[0] += 1000
    assert calls() == 2
    assert turnstile.wait_of(plan()) == pytest.approx(0.5)


async def test_an_agents_own_budget_stands_in_place_of_the_gateways() -> None:
    limits = Limits(concurrent_calls=4, calls_per_second=5)
    assert limits.of(plan()) == limits
    assert limits.of(plan(most=1, rate=0.5)) == Limits(1, 0.5)


async def test_a_gateway_that_ends_takes_no_new_calls(tmp_path: Path) -> None:
    async with (
        serve_http(Script("x")) as served,
        watched(tmp_path, limited(served.url)) as running,
        raw(running.address.url("a", "x")) as http,
    ):
        running.desk.turnstile.is_closing = True
        assert (await http.modern("tools/call", ECHO))[0] == 503
