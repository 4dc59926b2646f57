"""Budgets in our own process: tools of our own and of MCP servers are counted alike, in the gateway's words."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from outfitter.catalog import Budget, Budgets, Effect, Measure, Period, ToolRule
from outfitter.policy import BudgetPolicy, RulePolicy
from outfitter.session import Session
from outfitter.storage import open_ledger
from outfitter.tools import Budget as PromptBudget
from outfitter.tools import BudgetTracker, ToolContext, execute
from tests.tools.stages import STAGES, Stage

NOON = 1_800_014_400.0


@pytest.fixture(scope="module", params=sorted(STAGES))
def stage(request: pytest.FixtureRequest) -> Generator[Stage]:
    """The tools on each stage in turn."""
    with STAGES[request.param]() as found:
        yield found


def day(measure: Measure, amount: int, server: str = "", tool: str = "") -> Budget:
    return Budget(measure, amount, Period.DAY, server, tool)


def policy(*limits: Budget, repeats: int | None = None) -> BudgetPolicy:
    return BudgetPolicy(Budgets(repeats=repeats, limits=limits), "a", clock=lambda: NOON)


@pytest.mark.promise("BUD-12")
def test_calls_are_counted_wherever_the_tool_lives(stage: Stage) -> None:
    server = stage.server or "native"
    counted = policy(day(Measure.CALLS, 2, server, "echo"), day(Measure.BYTES, 10**6), day(Measure.TOKENS, 10**6))
    context = ToolContext(policies=(counted,))
    codes = [execute(stage["echo"], {"text": str(number)}, context=context).code for number in range(3)]
    assert codes == ["", "", "budget_exceeded"]
    refused = execute(stage["echo"], {"text": "x"}, context=context)
    assert refused.message == (
        f"'{stage['echo'].name}' was refused: the budget calls_per_day for {server}/echo of agent 'a' is used up: "
        "2 of 2 calls; it begins anew at 2027-01-16T00:00:00Z, in 43200 seconds"
    )
    calls, size, tokens = (state.used or 0 for state in counted.states())
    assert calls == 2
    assert size >= 2 * len('{"text":"0"}')
    assert 0 < tokens < size


def test_a_call_that_another_policy_refuses_is_not_counted(stage: Stage) -> None:
    counted = policy(day(Measure.CALLS, 5))
    tracker = BudgetTracker(PromptBudget(max_tool_calls=5))
    rules = RulePolicy([ToolRule(("echo",), Effect.DENY)])
    context = ToolContext(policies=(counted, rules), budget=tracker)
    assert execute(stage["echo"], {}, context=context).code == "denied"
    assert (counted.states()[0].used, tracker.tool_calls) == (0, 0)
    none = policy(day(Measure.CALLS, 0))
    refused = execute(stage["echo"], {}, context=ToolContext(policies=(counted, none), budget=tracker))
    assert refused.code == "budget_exceeded"
    assert (counted.states()[0].used, tracker.tool_calls) == (0, 0)


def test_a_session_is_a_run_and_a_loop_is_broken(stage: Stage) -> None:
    counted = policy(Budget(Measure.CALLS, 3, Period.RUN), repeats=2)
    first, second = (ToolContext(session=Session(), policies=(counted,)) for _ in range(2))
    assert [execute(stage["echo"], {"text": "x"}, context=first).code for _ in range(3)] == ["", "", "loop"]
    assert [execute(stage["echo"], {"text": text}, context=first).code for text in "ab"] == ["", "budget_exceeded"]
    assert execute(stage["echo"], {"text": "x"}, context=second).code == ""


def test_threads_share_a_ledger_file_exactly(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "a.ledger")
    budgets = Budgets(limits=(day(Measure.CALLS, 150),))
    policies = [BudgetPolicy(budgets, "a", ledger, lambda: NOON) for _ in range(4)]
    codes: list[bool] = []

    def hammer(own: BudgetPolicy) -> None:
        from outfitter.calls import Call

        codes.extend(own.spend(Call("t", "t")) is None for _ in range(50))

    threads = [threading.Thread(target=hammer, args=(own,)) for own in policies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (codes.count(True), codes.count(False)) == (150, 50)
    ledger.close()
