"""Calls in our own process that a policy asks about: who is asked, for how long, and what the model hears."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.app import MachineApprover
from outfitter.calls import Call, Outcome, ToolInvoked
from outfitter.catalog import Effect, ToolRule
from outfitter.policy import Ask, Decision, Deny, Facts, RulePolicy, Verdict, Wish
from outfitter.session import Session
from outfitter.storage import ApprovalStore, ApprovalTimes
from outfitter.tools import Budget, BudgetTracker, Deadline, Tool, ToolContext, aexecute, execute

RULES = (RulePolicy([ToolRule(("*",), Effect.ASK, reason="it deletes", unless_read_only=True)]),)
YES, NO = Verdict(is_yes=True, by="alice"), Verdict(is_yes=False, by="bob", where="terminal")


@dataclass(slots=True)
class Shop:
    """A tool that must be asked for, and what it did."""

    deleted: list[str] = field(default_factory=list[str])

    @property
    def tool(self) -> Tool[Any, Any]:
        def delete(name: str, api_key: str = "") -> str:
            """Delete a thing."""
            self.deleted.append(name)
            return f"{name} is gone{'!' * (not api_key)}"

        return Tool.wrap(delete)


def call(tool: Tool[Any, Any], context: ToolContext, *, is_async: bool) -> Any:  # noqa: ANN401 - a result
    arguments = {"name": "x", "api_key": "hunter2"}

    async def run() -> Any:  # noqa: ANN401 - same
        return await aexecute(tool, arguments, context=context)

    return anyio.run(run) if is_async else execute(tool, arguments, context=context)


BOTH = pytest.mark.parametrize("is_async", [True, False], ids=["awaited", "blocking"])


@pytest.mark.promise("APPROVAL-LIBRARY")
@BOTH
@pytest.mark.parametrize("is_of_session", [True, False])
def test_a_function_is_asked_and_what_it_says_counts(is_async: bool, is_of_session: bool) -> None:
    asked: list[Wish] = []

    def say(verdict: object) -> Callable[[Wish], Any]:
        def approve(wish: Wish) -> object:
            asked.append(wish)
            return verdict

        return approve

    async def yes(wish: Wish) -> Verdict:
        asked.append(wish)
        return YES

    shop = Shop()
    told: list[tuple[str, str]] = []
    for approve in (say(True), yes, say(NO), say(None), say("yes")):
        session = Session(approver=approve if is_of_session else None)
        context = ToolContext(session, policies=RULES, approver=None if is_of_session else approve)
        result = call(shop.tool, context, is_async=is_async)
        event = session[ToolInvoked].latest()
        told.append((result.code, "" if event is None else event.decision))
    assert told == [
        ("", "approved by a person"), ("", "approved by alice"), ("denied", "ask"), ("approval_expired", "ask"),
        ("approval_expired", "ask"),
    ]  # fmt: skip
    assert shop.deleted == ["x", "x"]
    assert asked[0].reason == "it deletes"
    assert "hunter2" not in str(asked[0].arguments)


@BOTH
def test_nobody_is_waited_for_longer_than_said_and_a_failing_approver_is_no_yes(is_async: bool) -> None:
    shop, let_go = Shop(), threading.Event()

    def silent(_wish: Wish) -> bool:
        return let_go.wait(60)

    def broken(_wish: Wish) -> bool:
        raise OSError("the line is dead")

    contexts = (
        lambda: ToolContext(policies=RULES, approver=silent, approval_wait=0.05),
        lambda: ToolContext(policies=RULES, approver=silent, deadline=Deadline.after(2.0)),
        lambda: ToolContext(policies=RULES, approver=broken),
    )
    assert [call(shop.tool, make(), is_async=is_async).code for make in contexts] == ["approval_expired"] * 3
    assert call(shop.tool, ToolContext(policies=RULES), is_async=is_async).code == "approval_required"
    let_go.set()
    assert shop.deleted == []


@dataclass(slots=True)
class Turning:
    """A policy that asks first, and denies when it is asked again."""

    name: str = "turning"
    asked: int = 0

    def check(self, call: Call, facts: Facts) -> Decision:
        del call, facts
        self.asked += 1
        return Ask("sure?") if self.asked == 1 else Deny("not any more")

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:
        del call, outcome
        return facts


@BOTH
def test_a_yes_changes_neither_what_is_denied_meanwhile_nor_what_is_spent(is_async: bool) -> None:
    shop = Shop()
    denied = call(shop.tool, ToolContext(policies=(Turning(),), approver=lambda _: True), is_async=is_async)
    assert (denied.code, "not any more" in denied.message) == ("denied", True)
    tracker = BudgetTracker(Budget(max_tool_calls=1))
    context = ToolContext(policies=RULES, approver=lambda wish: wish.digest != "", budget=tracker)
    assert [call(shop.tool, context, is_async=is_async).code for _ in range(2)] == ["", "budget_spent"]
    refused = ToolContext(policies=RULES, approver=lambda _: False, budget=BudgetTracker(Budget(max_tool_calls=0)))
    assert call(shop.tool, refused, is_async=is_async).code == "denied"


@pytest.mark.promise("G22")
def test_a_tool_that_is_believed_to_read_only_is_not_asked_about() -> None:
    shop = Shop()
    tool = shop.tool
    assert execute(tool, {"name": "x"}, context=ToolContext(policies=RULES)).code == "approval_required"
    tool.reads_only = True
    assert execute(tool, {"name": "x"}, context=ToolContext(policies=RULES)).success


@pytest.mark.promise("APPROVAL-LIBRARY")
@BOTH
def test_whoever_answers_for_this_machine_answers_for_this_process_too(tmp_path: Path, is_async: bool) -> None:
    store = ApprovalStore(tmp_path, ApprovalTimes(valid=60.0))
    shop, person = Shop(), ApprovalStore(tmp_path, ApprovalTimes(valid=60.0))
    context = ToolContext(policies=RULES, approver=MachineApprover(store), adapter="mine")

    def answer(verdict: Verdict) -> threading.Thread:
        def work() -> None:
            for _ in range(3000):
                waiting = [one for one in person.list(["waiting"]) if one.waits_until]
                if waiting:
                    person.decide(waiting[0].id, verdict)
                    return
                threading.Event().wait(0.02)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    for verdict, code in ((YES, ""), (NO, "denied")):
        thread = answer(verdict)
        assert call(shop.tool, context, is_async=is_async).code == code
        thread.join()
    assert [(one.agent, one.tool, one.state) for one in person.list()] == [
        ("mine", "delete", "denied"), ("mine", "delete", "used"),
    ]  # fmt: skip
    assert call(shop.tool, context, is_async=is_async).code == "denied", "a no counts for the equal call too"
    later = ToolContext(policies=RULES, approver=MachineApprover(store), approval_wait=0.0)
    assert call(shop.tool, later, is_async=is_async).code == "approval_expired"
    (left,) = person.list(["waiting"])
    person.decide(left.id, YES)
    assert call(shop.tool, later, is_async=is_async).success
    for one in (store, person):
        one.close()
