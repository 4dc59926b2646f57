"""Deadlines, budgets, and what undoes a call that failed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outfitter.calls import ToolInvoked, ToolResult
from outfitter.errors import Invalid
from outfitter.policy import SequentialDependencyPolicy
from outfitter.tools import Budget, BudgetTracker, Deadline, Tool, ToolContext, aexecute, execute


@dataclass(frozen=True, slots=True)
class Params:
    text: str = ""


def test_a_deadline_counts_down_to_nothing() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    deadline = Deadline(now)
    assert deadline.remaining(now - timedelta(seconds=3)) == 3.0
    assert deadline.remaining(now + timedelta(seconds=3)) == 0.0
    with pytest.raises(Invalid, match="time zone"):
        Deadline(now.replace(tzinfo=None))


def test_the_earlier_of_two_deadlines_counts_and_the_handler_sees_it() -> None:
    seen: list[Deadline | None] = []

    def handler(_params: Params, *, context: ToolContext) -> None:
        seen.append(context.deadline)

    tool = Tool[Params, None]("look", "Looks", handler)
    soon, late = Deadline.after(1000), Deadline.after(2000)
    for own, budget in ((soon, late), (late, soon), (None, soon)):
        execute(tool, context=ToolContext(deadline=own, budget=BudgetTracker(Budget(deadline=budget))))
    assert seen == [soon] * 3


def test_calls_are_counted_exactly_from_many_threads() -> None:
    tracker = BudgetTracker(Budget(max_tool_calls=100))
    told: list[str | None] = []
    threads = [threading.Thread(target=lambda: told.extend(tracker.spend_call() for _ in range(30))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tracker.tool_calls, told.count(None)) == (100, 100)
    assert "the budget of 100 tool calls is spent" in told


def test_tokens_that_are_spent_stop_further_calls() -> None:
    tracker = BudgetTracker(Budget(max_input_tokens=10, max_output_tokens=10, max_total_tokens=15))
    assert tracker.spend_tokens(10, 5) is None
    assert tracker.spend_call() is None
    assert tracker.spend_tokens(0, 1) == "the budget is spent: 16 of 15 tokens"
    assert tracker.spend_tokens(1, 0) == "the budget is spent: 11 of 10 input tokens, 17 of 15 tokens"
    assert tracker.spend_call() is not None
    assert tracker.tool_calls == 1


# ── compensating ──


class Bookings:
    """A world outside: what was booked, and what was cancelled again."""

    def __init__(self, *, fails: bool = True, undo_fails: bool = False) -> None:
        self.cancelled: list[str] = []
        self.undo_fails = undo_fails
        self.undo = Tool[Params, Any]("cancel", "Cancels", self.cancel)
        self.fails = fails
        self.tool = Tool[Params, Any]("book", "Books", self.book, compensate=self.undo)

    def book(self, _params: Params) -> ToolResult[None]:
        return ToolResult("no" if self.fails else "booked", None, success=not self.fails)

    def cancel(self, params: Params) -> ToolResult[None]:
        self.cancelled.append(params.text)
        return ToolResult("gone" if not self.undo_fails else "too late", None, success=not self.undo_fails)


@pytest.mark.promise("CALL-COMPENSATE")
@pytest.mark.anyio
async def test_what_failed_is_undone_with_the_same_arguments_and_both_are_recorded() -> None:
    bookings, context = Bookings(), ToolContext()
    for result in (
        execute(bookings.tool, {"text": "x"}, context=context),
        await aexecute(bookings.tool, {"text": "x"}, context=context),
    ):
        assert (result.success, result.message) == (False, "no (undone by 'cancel')")
    events = context.session[ToolInvoked].all()
    assert [event.name for event in events] == ["book", "cancel"] * 2
    assert len({event.call_id for event in events}) == 4
    assert bookings.cancelled == ["x", "x"]


def test_a_call_that_worked_or_was_never_begun_is_not_undone() -> None:
    worked = Bookings(fails=False)
    assert execute(worked.tool, {"text": "x"}).message == "booked"
    for context, arguments in (
        (ToolContext(), {"text": 1}),
        (ToolContext(deadline=Deadline.after(-1)), {"text": "x"}),
        (ToolContext(policies=(SequentialDependencyPolicy({"book": {"look"}}),)), {"text": "x"}),
    ):
        assert "undo" not in execute(worked.tool, arguments, context=context).message
    assert worked.cancelled == []


@pytest.mark.promise("CALL-COMPENSATE")
def test_what_timed_out_is_undone_although_its_deadline_and_budget_are_spent() -> None:
    bookings, leave = Bookings(), threading.Event()

    def wait(_params: Params) -> None:
        leave.wait(60)

    slow = replace(bookings.tool, handler=wait)
    tracker = BudgetTracker(Budget(max_tool_calls=1))
    result = execute(slow, {"text": "x"}, context=ToolContext(deadline=Deadline.after(0.05), budget=tracker))
    leave.set()
    assert result.code == "timeout"
    assert result.message.endswith("(undone by 'cancel')")
    assert tracker.tool_calls == 1


def test_a_failure_to_undo_is_told_and_not_undone_in_turn() -> None:
    bookings = Bookings(undo_fails=True)
    bookings.undo.compensate = bookings.tool
    result = execute(bookings.tool, {"text": "x"})
    assert result.message == "no ('cancel' could not undo it: too late)"
    assert bookings.cancelled == ["x"]
