"""Budgets at the gateway: both lanes count alike, every worker counts together, and nothing is forgotten."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.catalog import Agent, Budget, Budgets, Catalog, MCPServer, Measure, Period
from outfitter.gateway import Governing, LedgerAccounts, Seat
from outfitter.policy import BudgetState, MemoryLedger, Payer, states_of
from outfitter.resolution import resolve
from outfitter.testing import Script, serve_http
from tests.gateway.fast_kit import Lane, lane, pair, parrot
from tests.gateway.kit import agent, raw
from tests.gateway.test_fast_lanes import UNUSUAL, USUAL
from tests.gateway.test_operation import call, outfitter, started, write_catalog
from tests.gateway.test_workers import children

pytestmark = pytest.mark.anyio
NOON = 1_800_014_400.0
MUCH = 10**9
COUNTED = Budgets(
    limits=(
        Budget(Measure.CALLS, MUCH, Period.DAY),
        Budget(Measure.BYTES, MUCH, Period.DAY),
        Budget(Measure.TOKENS, MUCH, Period.HOUR, "x"),
        Budget(Measure.CALLS, MUCH, Period.MINUTE, "x", "say"),
    )
)


def governed() -> Governing:
    return Governing(accounts=LedgerAccounts(MemoryLedger(), lambda: NOON))


def spender(url: str, budgets: Budgets) -> Agent:
    return replace(agent("a", MCPServer.http("x", url)), budgets=budgets)


def states(one: Lane, budgets: Budgets) -> tuple[BudgetState, ...]:
    accounts = one.desk.governing.accounts
    assert isinstance(accounts, LedgerAccounts)
    return states_of(accounts.ledger, Payer("a"), budgets, NOON)


@pytest.mark.promise("BUD-08")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_both_lanes_count_the_same(era: str) -> None:
    async with (
        parrot(era) as bird,
        pair(spender(bird.url, COUNTED), era=era, patience=20, governing=governed) as both,
    ):
        for wanted in ({"text": "hi"}, USUAL["plain"], USUAL["failed"], {"number": 7}):
            fast, full = await both.call("x_say", wanted)
            assert fast == full
        assert both.fast.taken() == {"fast": 4}
        counted = [(state.used or 0) for state in states(both.fast, COUNTED)]
        assert counted[0] == counted[3] == 4
        assert counted[1] > 300
        assert states(both.fast, COUNTED)[0] == states(both.full, COUNTED)[0]
        slow = [(state.used or 0) for state in states(both.full, COUNTED)]
        # A server that puts spaces into its JSON is counted with them where its answer is passed on as it came.
        assert slow[1] <= counted[1] <= 1.1 * slow[1]


async def test_a_call_that_changes_lanes_is_counted_once() -> None:
    for kind, wanted in UNUSUAL.items():
        async with (
            parrot() as bird,
            lane(spender(bird.url, COUNTED), is_fast=True, governing=governed()) as one,
            raw(one.address.url("a")) as client,
        ):
            await client.modern("tools/list")
            await client.modern("tools/call", {"name": "x_say", "arguments": wanted})
            assert states(one, COUNTED)[0].used == 1, kind
            assert (states(one, COUNTED)[1].used or 0) >= len(json.dumps(wanted, separators=(",", ":"))), kind


@pytest.mark.promise("BUD-09")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_used_up_budget_is_a_result_that_a_model_can_read(era: str) -> None:
    budgets = Budgets(limits=(Budget(Measure.CALLS, 2, Period.DAY, "x", "say"),))
    async with parrot(era) as bird, pair(spender(bird.url, budgets), era=era, governing=governed) as both:
        answers = [await both.call("x_say", {"n": number}) for number in range(3)]
        assert all(fast == full for fast, full in answers)
        result: Any = answers[2][0][1]["result"]
        assert result["isError"] is True
        (content,) = result["content"]
        assert content["text"] == (
            "'x_say' was refused: the budget calls_per_day for x/say of agent 'a' is used up: 2 of 2 calls; "
            "it begins anew at 2027-01-16T00:00:00Z, in 43200 seconds"
        )
        assert result["_meta"]["outfitter/outcome"] == {
            "code": "budget_exceeded", "budget": "calls_per_day", "scope": "x/say", "used": 2, "limit": 2,
            "resetsAt": "2027-01-16T00:00:00Z", "retryAfter": 43200,
        }  # fmt: skip
        assert bird.calls["say"] == 4
        for one in (both.fast, both.full):
            last = one.records[-1]
            assert (last.outcome, last.code, last.decision) == ("refused", "budget_exceeded", "deny")
            assert last.rule.startswith("the budget calls_per_day for x/say of agent 'a' is used up: 2 of 2 calls")
            accounts = one.desk.governing.accounts
            assert isinstance(accounts, LedgerAccounts)
            accounts.show_in(one.desk.recorder.metrics)
            told = 'outfitter_budget_refusals_total{agent="a",budget="calls_per_day",scope="x/say"} 1'
            assert told in one.desk.recorder.metrics.text()


async def test_a_loop_is_broken_in_both_lanes() -> None:
    async with (
        parrot() as bird,
        pair(spender(bird.url, Budgets(repeats=2)), era="modern", governing=governed) as both,
    ):
        same = [await both.call("x_say", {"b": 1, "a": 2}), await both.call("x_say", {"a": 2, "b": 1})]
        refused = await both.call("x_say", {"a": 2, "b": 1})
        other = await both.call("x_say", {"a": 3})
        again = await both.call("x_say", {"a": 2, "b": 1})
        for fast, full in (*same, refused, other, again):
            assert fast == full
        told: Any = refused[0][1]["result"]
        assert told["_meta"]["outfitter/outcome"]["code"] == "loop"
        assert not again[0][1]["result"].get("isError")
        assert [record.outcome for record in both.fast.records] == ["done", "done", "refused", "done", "done"]


@pytest.mark.promise("BUD-10")
def test_a_run_pays_for_itself_and_for_the_runs_above_it() -> None:
    accounts = LedgerAccounts(MemoryLedger(), lambda: NOON)
    above = Budgets(limits=(Budget(Measure.CALLS, 3, Period.RUN), Budget(Measure.CALLS, 1, Period.DAY)))
    own = Budgets(limits=(Budget(Measure.CALLS, 2, Period.RUN),))
    plan = resolve("child", Catalog(agents={"child": Agent("child", budgets=own)}))

    def seat(run: str) -> Seat:
        return Seat(replace(plan, run_id=run), {}, run=f"token#child#{run}", above=(("top", above),))

    first, second = accounts.meter_of(seat("one"), "x", "say"), accounts.meter_of(seat("two"), "x", "say")
    assert first is not None
    assert second is not None
    assert [first.spend(), first.spend()] == [None, None]
    refused = first.spend()
    assert refused is not None
    assert refused.owner == "run 'one'"
    assert second.spend() is None
    refused = second.spend()
    assert refused is not None
    assert (refused.owner, refused.used, refused.limit) == ("run 'top'", 3, 3)


@pytest.mark.promise("BUD-11")
async def test_workers_count_together_and_go_on_after_they_were_killed(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        path = tmp_path / "outfitter" / "agents" / "a.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "budgets": {"calls_per_day": 30}}))
        results: list[int] = []
        async with started(tmp_path, "--files", "--workers", "2") as gateway:
            with anyio.fail_after(60):
                await call(f"{gateway.url}/mcp/a/x", 25, results)
            assert results == [200] * 25
            workers = children(gateway.process.pid)
            gateway.process.kill()
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
        (tmp_path / "state" / "gateway.json").unlink(missing_ok=True)
        async with started(tmp_path, "--files") as gateway:
            with anyio.fail_after(60):
                await call(f"{gateway.url}/mcp/a/x", 25, results)
            assert sorted(results) == [0] * 20 + [200] * 30
            assert served.ledger.requests["tools/call"] == 30
            told = json.loads(outfitter(tmp_path, "budgets", "a", "--json").stdout)
            (shown,) = told["agents"][0]["budgets"]
            assert (shown["budget"], shown["used"], shown["limit"]) == ("calls_per_day", 30, 30)
            again = outfitter(tmp_path, "budgets", "a", "--reset", "calls_per_day")
            assert again.returncode == 0, again.stderr
            assert "30 of 30" in again.stdout
            await call(f"{gateway.url}/mcp/a/x", 2, results)
            assert results[-2:] == [200, 200]
            told = json.loads(outfitter(tmp_path, "budgets", "a", "--json").stdout)
            assert told["resets"][0]["used"] == 30
