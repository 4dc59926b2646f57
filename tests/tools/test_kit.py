"""One suite for every kind of tool: native and bridged ones behave alike, to the policies, events and transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from outfitter.basics import MASK
from outfitter.calls import Call, Done, Failed, Outcome, Refused, TimedOut, ToolInvoked, ToolResult
from outfitter.catalog import Effect, ToolRule
from outfitter.policy import Allow, Decision, Deny, Facts, RulePolicy, SequentialDependencyPolicy
from outfitter.session import Session
from outfitter.tools import (
    Budget,
    BudgetTracker,
    Deadline,
    PolicyFacts,
    Tool,
    Toolbox,
    ToolContext,
    aexecute,
    execute,
)
from tests.session.values import Note
from tests.tools.stages import STAGES, Stage

pytestmark = pytest.mark.promise("ONE-KIT")


@pytest.fixture(params=sorted(STAGES), scope="module")
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with STAGES[request.param]() as opened:
        yield opened


@pytest.fixture
def context() -> ToolContext:
    return ToolContext()


def _event(context: ToolContext) -> ToolInvoked:
    (event,) = context.session[ToolInvoked].all()
    return event


@dataclass(frozen=True, slots=True)
class Recording:
    """A policy that remembers what it was asked and told, and denies what it is told to."""

    asked: list[Call]
    told: list[Outcome]
    denies: bool = False
    name: str = "recording"

    def check(self, call: Call, facts: Facts) -> Decision:
        assert facts is not None
        self.asked.append(call)
        return Deny("not today") if self.denies else Allow()

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:
        self.told.append(outcome)
        return facts | {f"{call.tool}:{type(outcome).__name__}"}


# ── results ──


def test_a_call_that_works_gives_its_text_and_says_so(stage: Stage, context: ToolContext) -> None:
    result = execute(stage["add"], {"a": 1, "b": 2}, context=context)
    assert (result.success, result.message, result.code) == (True, '{"sum": 3}', "")
    assert isinstance(_event(context).outcome, Done)


def test_a_tool_that_says_that_it_failed_has_failed(stage: Stage, context: ToolContext) -> None:
    result = execute(stage["fail"], {"message": "no luck"}, context=context)
    assert (result.success, result.message, result.value, result.code) == (False, "no luck", None, "tool_error")
    assert isinstance(_event(context).outcome, Failed)


def test_a_tool_that_breaks_has_failed_and_nothing_is_raised(stage: Stage, context: ToolContext) -> None:
    result = execute(stage["broken"], {"message": "all broken"}, context=context)
    assert not result.success
    assert "all broken" in result.message
    assert isinstance(_event(context).outcome, Failed)


@pytest.mark.anyio
async def test_awaited_calls_end_the_same(stage: Stage, context: ToolContext) -> None:
    assert (await aexecute(stage["add"], {"a": 1, "b": 2}, context=context)).message == '{"sum": 3}'
    assert (await aexecute(stage["fail"], {"message": "no luck"}, context=context)).message == "no luck"
    assert "all broken" in (await aexecute(stage["broken"], {"message": "all broken"}, context=context)).message
    assert (await aexecute(stage["add"], {}, context=context)).code == "invalid_arguments"
    outcomes = [type(event.outcome) for event in context.session[ToolInvoked].all()]
    assert outcomes == [Done, Failed, Failed, Refused]


@pytest.mark.parametrize(
    "arguments",
    [None, {}, {"a": 1}, {"a": "x", "b": 2}, {"a": -1, "b": 2}, {"a": None, "b": 2}, [1, 2], "text", 3, {1: 2}],
    ids=repr,
)
def test_unfit_arguments_reach_no_tool(stage: Stage, context: ToolContext, arguments: object) -> None:
    result = execute(stage["add"], arguments, context=context)
    assert (result.success, result.code) == (False, "invalid_arguments")
    assert result.message.startswith("invalid arguments for 'kit_add': ")
    event = _event(context)
    assert isinstance(event.outcome, Refused)
    assert event.decision == "unasked"


@pytest.mark.parametrize("number", [float("nan"), 10**5000, 1.5], ids=["nan", "huge", "half"])
def test_numbers_out_of_the_ordinary_end_in_an_outcome(stage: Stage, context: ToolContext, number: float) -> None:
    execute(stage["add"], {"a": 1, "b": number}, context=context)
    assert repr(_event(context))


def test_parameters_may_be_given_as_an_instance_of_their_type(stage: Stage, context: ToolContext) -> None:
    params = stage["add"].params_type(a=20, b=22)
    assert execute(stage["add"], params, context=context).message == '{"sum": 42}'
    assert _event(context).params == {"a": 20, "b": 22}


# ── events ──


def test_the_event_tells_where_the_tool_is_and_what_was_asked(stage: Stage, context: ToolContext) -> None:
    execute(stage["add"], {"a": 1, "b": 2}, context=replace(context, call_id="call-7"))
    event = _event(context)
    assert (event.name, event.tool_name, event.call_id) == ("kit_add", "kit_add", "call-7")
    assert (event.source, event.mcp_server, event.adapter) == (stage.source, stage.server, stage.adapter)
    assert (event.params, event.decision) == ({"a": 1, "b": 2}, "allow")
    assert event.session_id == context.session.session_id
    assert event.duration >= 0
    assert event.created_at.tzinfo is not None
    assert event.result.message == '{"sum": 3}'


def test_secrets_are_masked_by_name_and_by_schema(stage: Stage, context: ToolContext) -> None:
    execute(stage["echo"], {"text": "hi", "api_key": "hunter2", "pin": "1234"}, context=context)
    event = _event(context)
    assert event.params == {"text": "hi", "api_key": MASK, "pin": MASK}
    assert "hunter2" not in repr(event)


def test_a_listener_that_fails_disturbs_neither_call_nor_event(stage: Stage, context: ToolContext) -> None:
    def fail(_event: ToolInvoked) -> None:
        raise RuntimeError("no")

    context.session.dispatcher.subscribe(ToolInvoked, fail)
    assert execute(stage["add"], {"a": 1, "b": 2}, context=context).success
    assert _event(context).result.success


# ── policies ──


def test_policies_are_asked_before_and_told_after(stage: Stage, context: ToolContext) -> None:
    policy = Recording([], [])
    execute(stage["fail"], {"message": "no"}, context=replace(context, policies=(policy,)))
    (call,) = policy.asked
    assert (call.name, call.tool, call.server, dict(call.arguments)) == (
        "kit_fail", "fail", stage.server, {"message": "no"},
    )  # fmt: skip
    assert call.call_id == _event(context).call_id
    assert isinstance(policy.told[0], Failed)
    assert context.session[PolicyFacts].latest() == PolicyFacts("recording", frozenset({"fail:Failed"}))


def test_a_denied_call_reaches_no_tool_and_is_recorded(stage: Stage, context: ToolContext) -> None:
    policy = Recording([], [], denies=True)
    result = execute(stage["add"], {"a": 1, "b": 2}, context=replace(context, policies=(policy,)))
    assert (result.code, result.message) == ("denied", "policy 'recording': not today")
    assert _event(context).decision == "deny"
    assert isinstance(policy.told[0], Refused)


def test_a_call_that_a_person_must_approve_is_refused_until_then(stage: Stage, context: ToolContext) -> None:
    policy = RulePolicy([ToolRule(("add",), Effect.ASK)])
    result = execute(stage["add"], {"a": 1, "b": 2}, context=replace(context, policies=(policy,)))
    assert result.code == "approval_required"
    assert _event(context).decision == "ask"


def test_the_tools_own_policies_hold_and_sequences_are_kept(stage: Stage, context: ToolContext) -> None:
    policy = SequentialDependencyPolicy({"add": {"echo"}})
    add, echo = (replace(stage[name], arguments=stage[name].params, policies=(policy,)) for name in ("add", "echo"))
    assert execute(add, {"a": 1, "b": 2}, context=context).code == "denied"
    assert execute(echo, {}, context=context).success
    assert execute(add, {"a": 1, "b": 2}, context=context).success


# ── transactions ──


def _outer(inner: Tool[object, object], arguments: object, *, succeeds: bool) -> Tool[None, object]:
    """A native tool that writes state, then calls another tool, then succeeds or fails whatever that said."""

    def handler(_params: None, *, context: ToolContext) -> ToolResult[object]:
        context.session[Note].append(Note("outer"))
        result = execute(inner, arguments, context=replace(context, report=_writer(context.session)))
        return ToolResult(result.message, None, success=succeeds)

    return Tool[None, object]("outer", "Calls another tool", handler)


def _writer(session: Session) -> Callable[[float, float | None, str], None]:
    """Writes state while a call is under way."""

    def report(_progress: float, _total: float | None, _message: str) -> None:
        session[Note].append(Note("inner"))

    return report


def _notes(context: ToolContext) -> list[str]:
    return [note.text for note in context.session[Note].all()]


@pytest.mark.parametrize(("behaviour", "arguments"), [("fail", {}), ("slow", {})])
def test_what_was_written_during_a_failed_call_is_undone(
    stage: Stage, context: ToolContext, behaviour: str, arguments: object
) -> None:
    context.session[Note].append(Note("before"))
    execute(stage[behaviour], arguments, context=replace(context, report=_writer(context.session)))
    assert _notes(context) == ["before"]
    assert len(context.session[ToolInvoked].all()) == 1


def test_an_inner_call_that_fails_is_undone_alone(stage: Stage, context: ToolContext) -> None:
    execute(_outer(stage["fail"], {}, succeeds=True), context=context)
    assert _notes(context) == ["outer"]
    assert [event.name for event in context.session[ToolInvoked].all()] == ["kit_fail", "outer"]


def test_an_outer_call_that_fails_undoes_the_inner_one_too(stage: Stage, context: ToolContext) -> None:
    policy = Recording([], [])
    execute(_outer(stage["add"], {"a": 1, "b": 2}, succeeds=False), context=replace(context, policies=(policy,)))
    assert _notes(context) == []
    inner, outer = context.session[ToolInvoked].all()
    assert (type(inner.outcome), type(outer.outcome)) == (Done, Failed)
    assert inner.call_id != outer.call_id
    assert context.session[PolicyFacts].latest() == PolicyFacts("recording", frozenset({"outer:Failed"}))


# ── time, budgets, cancelling ──


def test_a_tool_that_gives_no_answer_in_time_has_timed_out(stage: Stage, context: ToolContext) -> None:
    result = execute(stage["slow"], {}, context=context)
    assert (result.success, result.code) == (False, "timeout")
    assert isinstance(_event(context).outcome, TimedOut)


@pytest.mark.anyio
async def test_a_deadline_holds_for_awaited_calls(stage: Stage, context: ToolContext) -> None:
    result = await aexecute(stage["slow"], {}, context=replace(context, deadline=Deadline.after(0.2)))
    assert result.code == "timeout"
    assert _event(context).duration < 30


def test_nothing_is_begun_after_the_deadline(stage: Stage, context: ToolContext) -> None:
    result = execute(stage["add"], {"a": 1, "b": 2}, context=replace(context, deadline=Deadline.after(-1)))
    assert (result.code, isinstance(_event(context).outcome, TimedOut)) == ("timeout", True)
    assert "was not begun" in result.message


def test_a_spent_budget_refuses_the_call(stage: Stage, context: ToolContext) -> None:
    tracker = BudgetTracker(Budget(max_tool_calls=1))
    within = replace(context, budget=tracker)
    assert execute(stage["add"], {"a": 1}, context=within).code == "invalid_arguments"
    assert execute(stage["add"], {"a": 1, "b": 2}, context=within).success
    assert execute(stage["add"], {"a": 1, "b": 2}, context=within).code == "budget_spent"
    assert tracker.tool_calls == 1
    assert len(context.session[ToolInvoked].all()) == 3


@pytest.mark.anyio
async def test_a_cancelled_call_is_undone_leaves_one_event_and_stays_cancelled(
    stage: Stage, context: ToolContext
) -> None:
    begun = asyncio.Event()

    def report(_progress: float, _total: float | None, _message: str) -> None:
        context.session[Note].append(Note("inner"))
        begun.set()

    task = asyncio.create_task(aexecute(stage["slow"], {}, context=replace(context, report=report)))
    await begun.wait()
    assert _notes(context) == ["inner"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _notes(context) == []
    assert _event(context).result.code == "cancelled"


@pytest.mark.anyio
async def test_many_calls_at_once_each_end_in_their_own_event(stage: Stage, context: ToolContext) -> None:
    calls = [("add", {"a": n, "b": 1}) if n % 2 else ("fail", {"message": str(n)}) for n in range(20)]
    results = await asyncio.gather(*(aexecute(stage[tool], given, context=context) for tool, given in calls))
    wanted = [f'{{"sum": {n + 1}}}' if n % 2 else str(n) for n in range(20)]
    assert [result.message for result in results] == wanted
    events = context.session[ToolInvoked].all()
    assert len({event.call_id for event in events}) == 20


def test_a_toolbox_calls_by_name_and_answers_for_names_it_does_not_have(stage: Stage, context: ToolContext) -> None:
    box = Toolbox.of(stage.tools.values(), context)
    assert box.execute("kit_add", {"a": 1, "b": 2}, call_id="x").success
    missing = box.execute("kit_ad", {"password": "hunter2"}, call_id="y")
    assert (missing.code, "did you mean 'kit_add'?" in missing.message) == ("unknown_tool", True)
    first, second = context.session[ToolInvoked].all()
    assert (first.call_id, second.call_id, second.params) == ("x", "y", {"password": MASK})
