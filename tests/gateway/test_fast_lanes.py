"""Both lanes give the same answers: one list of calls, asked of both, in both eras on either side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import anyio
import pytest

from outfitter.catalog import Agent, Effect, MCPServer, TimeLimits, ToolFilter, ToolRule
from outfitter.testing import Script, serve_http, stdio_server
from tests.gateway.fast_kit import lane, pair, parrot
from tests.gateway.kit import Raw, agent, raw
from tests.gateway.watched import until

pytestmark = pytest.mark.anyio
ERAS: tuple[Literal["modern", "legacy"], ...] = ("modern", "legacy")
TEXT = {"content": [{"type": "text", "text": "yes"}]}
LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "log"}}
USUAL: dict[str, dict[str, Any]] = {
    "plain": {"answer": {"result": TEXT}},
    "failed": {"answer": {"result": {**TEXT, "isError": True}}},
    "dressed": {"answer": {"result": {**TEXT, "resultType": "complete", "_meta": {"a": 1}, "ttlMs": 5}}},
    "unicode": {"answer": {"result": {"content": [{"type": "text", "text": "Привет \U0001f600 \u0000 é"}]}}},
    "large": {"answer": {"result": {"content": [{"type": "text", "text": "ä" * 100_000}]}}},
    "extra": {"answer": {"result": TEXT, "something": "else"}},
}
UNUSUAL: dict[str, dict[str, Any]] = {
    "error": {"answer": {"error": {"code": -32050, "message": "no", "data": {"x": [1]}}}},
    "error status": {"answer": {"error": {"code": -32602, "message": "no"}}, "status": 400},
    "status": {"answer": {"oops": 1}, "status": 500},
    "not found": {"answer": {"oops": 1}, "status": 410},
    "needs auth": {"answer": {"oops": 1}, "status": 401},
    "events": {"answer": {"result": TEXT}, "events": True},
    "events first": {"answer": {"result": TEXT}, "events": True, "before": [LOG]},
    "wrong id": {"answer": {"result": TEXT, "id": 12345}},
    "no result": {"answer": {}},
    "odd result": {"answer": {"result": [1, 2]}},
    "odd meta": {"answer": {"result": {**TEXT, "_meta": [1]}}},
    "dropped": {"answer": {"result": TEXT}, "drop": True},
}


def same(pair_of: tuple[Any, Any]) -> None:
    fast, full = pair_of
    assert fast == full


@pytest.mark.promise("FAST-SAME")
@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_usual_calls_take_the_fast_lane_and_are_answered_alike(era: str, upstream: str) -> None:
    async with parrot(upstream) as bird, pair(agent("a", MCPServer.http("x", bird.url)), era=era, patience=20) as both:
        for wanted in USUAL.values():
            same(await both.call("x_say", wanted))
        same(await both.call("x_say"))
        same(await both.call("x_say", {"deep": [{"é": [1, 2.5, None, True]}]}, id="an id \u00e9"))
        same(await both.call("x_say", {}, id=-(10**20)))
        fast = list(bird.arguments)[::2]
        assert fast == list(bird.arguments)[1::2]
        count = len(USUAL) + 3
        assert both.fast.taken()["fast"] == count
        assert both.full.taken() == {"full": count}
        assert bird.calls["say"] == 2 * count, "one request to the server for each call"


@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_whatever_is_unusual_is_sent_once_and_answered_alike(era: str, upstream: str) -> None:
    for kind, wanted in UNUSUAL.items():
        async with parrot(upstream) as bird, pair(agent("a", MCPServer.http("x", bird.url)), era=era) as both:
            fast, full = await both.call("x_say", wanted)
            assert fast == full, kind
            assert bird.calls["say"] == 2, kind
            outcomes = [[record.outcome for record in one.records] for one in (both.fast, both.full)]
            assert outcomes[0] == outcomes[1], kind


@pytest.mark.parametrize(
    "body",
    [
        {"params": {"name": "x_say", "arguments": [1]}},
        {"params": {"name": "x_say", "arguments": None}},
        {"params": {"name": "x_nowhere", "arguments": {}}},
        {"params": {"name": "x_wait", "arguments": {}}},
        {"params": {"name": 7}},
        {"params": {"name": "x_say", "arguments": {}, "task": {"ttl": 1}}},
        {"id": None},
        {"id": 1.5},
        {"jsonrpc": "1.0"},
        {"method": "tools/cal"},
    ],
)
@pytest.mark.parametrize("era", ERAS)
async def test_odd_requests_are_answered_alike(era: str, body: dict[str, Any]) -> None:
    hidden = ToolFilter(exclude=("wait",))
    async with parrot() as bird, pair(agent("a", MCPServer.http("x", bird.url), x=hidden), era=era) as both:
        same(await both.call("x_say", {}, **body))


@pytest.mark.parametrize("era", ERAS)
async def test_rules_on_arguments_hold_in_the_fast_lane(era: str) -> None:
    rule = ToolRule(("say",), Effect.DENY, arguments={"/path": ("/etc/*",)}, reason="not there")
    async with parrot() as bird:
        ruled: Agent = replace(agent("a", MCPServer.http("x", bird.url)), rules=(rule,))
        async with pair(ruled, era=era) as both:
            same(await both.call("x_say", {"path": "/tmp/x"}))  # noqa: S108 - a path in an argument
            same(await both.call("x_say", {"path": "/etc/passwd"}))
            same(await both.call("x_say", {"path": "/\u0065tc/shadow"}))
            assert bird.calls["say"] == 2
            assert [record.lane for record in both.fast.records] == ["fast", "full", "full"]


async def test_headers_of_the_plan_go_along_and_the_callers_own_do_not() -> None:
    async with parrot() as bird:
        server = MCPServer.http("x", bird.url, headers={"X-Key": "armed"})
        async with pair(agent("a", server), era="modern", server="x") as both:
            for one in both.clients:
                one.headers = {**one.headers, "cookie": "a=b", "x-mine": "1"}
            same(await both.call("say", {}))
            same(await both.call("h\u00e9llo w\u00f6rld", {}))
            first, second, third, fourth = bird.headers
            for fast, full in ((first, second), (third, fourth)):
                differs = {"accept-encoding", "user-agent", "content-length"}
                assert {k: v for k, v in fast.items() if k not in differs} == {
                    k: v for k, v in full.items() if k not in differs
                }
                assert "cookie" not in fast
                assert fast["x-key"] == "armed"


@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_program_is_called_in_the_fast_lane_too(era: str, upstream: Literal["legacy", "modern"]) -> None:
    async with pair(agent("a", stdio_server(Script("x", eras=(upstream,)))), era=era, patience=20) as both:
        same(await both.call("x_echo", {"text": "hi\nthere é"}))
        same(await both.call("x_add", {"a": 1, "b": 2}))
        same(await both.call("x_add", {"a": "one"}))
        same(await both.call("x_nowhere", {}))
        # A client that hears a program's log messages must have someone who stands by.
        assert both.fast.taken()["fast"] >= (2 if era == "modern" else 0)


@pytest.mark.parametrize("upstream", ERAS)
async def test_a_slow_call_times_out_alike(upstream: str) -> None:
    async with parrot(upstream) as bird:
        server = replace(MCPServer.http("x", bird.url), limits=TimeLimits.of(call=0.6))
        async with pair(agent("a", server), era="modern") as both:
            fast, full = await both.call("x_wait", {})
            assert fast == full
            assert "did not answer in time" in str(fast)
            await until(lambda: bird.given_up == 2)
            assert len(bird.cancelled) == (2 if upstream == "legacy" else 0)


@pytest.mark.promise("FAST-CANCELS")
@pytest.mark.parametrize("seconds", [0.02, 0.5])
async def test_a_client_that_goes_away_ends_its_call_at_the_server(seconds: float) -> None:
    async with parrot() as bird, lane(agent("a", MCPServer.http("x", bird.url)), is_fast=True) as gateway:
        async with raw(gateway.address.url("a")) as http:
            await http.modern("tools/list")
            with anyio.move_on_after(seconds + 1):
                async with anyio.create_task_group() as group:
                    group.start_soon(http.modern, "tools/call", {"name": "x_wait"})
                    await until(lambda: bird.waiting > 0)
                    await anyio.sleep(seconds)
                    group.cancel_scope.cancel()
        with anyio.fail_after(1):
            await until(lambda: bird.given_up > 0 and len(gateway.records) > 0)
        assert [record.outcome for record in gateway.records] == ["cancelled"]


@pytest.mark.promise("G11")
async def test_equal_ids_of_two_agents_never_cross() -> None:
    async with serve_http(Script("x")) as served:
        server = MCPServer.http("x", served.url)
        async with (
            lane(agent("a", server), agent("b", server), is_fast=True) as gateway,
            raw(gateway.address.url("a")) as one,
            raw(gateway.address.url("b")) as two,
        ):
            await one.modern("tools/list")
            await two.modern("tools/list")
            wrong: list[object] = []

            async def ask(http: Raw, text: str) -> None:
                http.ids = 0
                _, said = await http.modern("tools/call", {"name": "x_echo", "arguments": {"text": text}})
                if said["id"] != 1 or text not in str(said["result"]):
                    wrong.append(said)

            async with anyio.create_task_group() as group:
                for number in range(100):
                    group.start_soon(ask, one, f"a-{number}-")
                    group.start_soon(ask, two, f"b-{number}-")
            assert wrong == []
            assert gateway.taken().total() == 200  # slow ones go on in the full lane, so how many are fast is chance
