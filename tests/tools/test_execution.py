"""The one path of a call, where our own code can look inside: what goes wrong, in what order, undone exactly once."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

import pytest

from outfitter.calls import Call, Done, Failed, Outcome, Refused, TimedOut, ToolInvoked, ToolResult
from outfitter.catalog import JsonValue
from outfitter.errors import CallDenied, Conflict
from outfitter.policy import Allow, Decision, Facts
from outfitter.schemas import Fault, shape_of
from outfitter.session import DispatchResult, InProcessDispatcher, Session
from outfitter.tools import PolicyFacts, ResourceRegistry, Tool, Toolbox, ToolContext, aexecute, execute
from tests.session.values import Note


@dataclass(frozen=True, slots=True)
class Params:
    text: str = ""


def _writing(then: Callable[[], object]) -> Tool[Params, Any]:
    """A tool that writes state and then does something."""

    def handler(params: Params, *, context: ToolContext) -> object:
        context.session[Note].append(Note(params.text or "written"))
        return then()

    return Tool[Params, Any]("write", "Writes", handler)


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail


def _notes(session: Session) -> list[str]:
    return [note.text for note in session[Note].all()]


def _outcomes(session: Session) -> list[type]:
    return [type(event.outcome) for event in session[ToolInvoked].all()]


@pytest.mark.promise("CALL-ONE-EVENT")
@pytest.mark.parametrize(
    ("then", "outcome"),
    [
        (lambda: "fine", Done),
        (lambda: ToolResult.error("no"), Failed),
        (_raising(ValueError("no")), Failed),
        (_raising(TimeoutError("late")), TimedOut),
        (_raising(CallDenied("no")), Refused),
        (_raising(ExceptionGroup("several", [ValueError("no")])), Failed),
    ],
)
def test_a_call_leaves_one_event_and_its_changes_only_when_it_worked(then: Callable[[], object], outcome: type) -> None:
    context = ToolContext()
    context.session[Note].append(Note("before"))
    result = execute(_writing(then), context=context)
    assert result.success == (outcome is Done)
    assert _outcomes(context.session) == [outcome]
    assert _notes(context.session) == (["before", "written"] if outcome is Done else ["before"])


@pytest.mark.promise("CALL-ONE-EVENT")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), BaseExceptionGroup("g", [KeyboardInterrupt()])])
@pytest.mark.parametrize("timeout", [None, 30.0], ids=["inline", "in a thread"])
def test_what_is_no_exception_is_raised_again_after_undoing_and_recording(
    error: BaseException, timeout: float | None
) -> None:
    context = ToolContext()
    context.session[Note].register(ToolInvoked, lambda notes, event: (*notes, Note(event.result.code)))
    with pytest.raises(type(error)):
        execute(replace(_writing(_raising(error)), timeout=timeout), context=context)
    assert _outcomes(context.session) == [Failed]
    assert _notes(context.session) == ["cancelled"]


@pytest.mark.promise("CALL-ONE-EVENT")
def test_an_awaited_handler_that_is_interrupted_is_undone_and_recorded() -> None:
    context = ToolContext()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(aexecute(_writing(_raising(KeyboardInterrupt())), context=context))
    assert (_outcomes(context.session), _notes(context.session)) == ([Failed], [])


@dataclass(frozen=True, slots=True)
class BrokenPolicy:
    """A policy that fails when it is asked, or when it is told."""

    when: str
    name: str = "broken"

    def check(self, call: Call, facts: Facts) -> Decision:
        assert call.name
        assert not facts
        if self.when == "asked":
            raise RuntimeError("hunter2")
        return cast("Decision", None) if self.when == "silent" else Allow()

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:
        assert call.name
        assert outcome
        if self.when == "told":
            raise RuntimeError("no")
        return facts


@pytest.mark.promise("POLICY-FAILS-CLOSED")
@pytest.mark.parametrize("when", ["asked", "silent"])
def test_a_policy_that_breaks_or_gives_no_answer_refuses_the_call(when: str) -> None:
    context = ToolContext(policies=(BrokenPolicy(when),))
    result = execute(_writing(lambda: "fine"), context=context)
    assert result.code == "denied"
    assert "hunter2" not in result.message
    assert (_outcomes(context.session), _notes(context.session)) == ([Refused], [])


def test_a_policy_that_breaks_when_it_is_told_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    context = ToolContext(policies=(BrokenPolicy("told"),))
    assert execute(_writing(lambda: "fine"), context=context).success
    assert (_outcomes(context.session), _notes(context.session)) == ([Done], ["written"])
    assert "policy 'broken' failed to take the result" in caplog.text


def test_one_policy_given_twice_is_asked_once_and_the_strictest_answer_counts() -> None:
    asked: list[str] = []

    class Counting(BrokenPolicy):
        __slots__ = ()

        def check(self, call: Call, facts: Facts) -> Decision:
            asked.append(call.name)
            return BrokenPolicy.check(self, call, facts)

    policy = Counting("never")
    tool = replace(_writing(lambda: "fine"), policies=(policy, BrokenPolicy("asked")))
    assert execute(tool, context=ToolContext(policies=(policy,))).code == "denied"
    assert asked == ["write"]


def _never(params: object) -> NoReturn:
    raise AssertionError(f"called with {params}")


@dataclass(frozen=True, slots=True)
class OddShape:
    """A shape that fails in ways nobody planned."""

    error: BaseException

    @property
    def schema(self) -> dict[str, JsonValue]:
        return {"type": "object"}

    @property
    def type(self) -> object:
        return dict

    def faults(self, value: JsonValue) -> tuple[Fault, ...]:
        raise self.error from ValueError(str(value))

    def load(self, value: JsonValue) -> NoReturn:
        raise self.error from ValueError(str(value))

    def dump(self, value: object) -> NoReturn:
        raise self.error from ValueError(str(value))


@pytest.mark.promise("CALL-ONE-EVENT")
@pytest.mark.parametrize("given", [{}, Params()], ids=["a mapping", "an instance"])
@pytest.mark.parametrize("error", [RecursionError("deep"), TypeError("odd"), OverflowError("big")])
def test_a_shape_that_breaks_refuses_the_arguments(error: Exception, given: object) -> None:
    context = ToolContext()
    tool = Tool[Any, Any]("odd", "Odd", _never, arguments=OddShape(error))
    result = execute(tool, given, context=context)
    assert (result.code, type(error).__name__ in result.message) == ("invalid_arguments", True)
    assert _outcomes(context.session) == [Refused]


def test_an_interruption_before_the_handler_is_recorded_too() -> None:
    context = ToolContext()
    tool = Tool[Any, Any]("odd", "Odd", _never, arguments=OddShape(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        execute(tool, {}, context=context)
    assert _outcomes(context.session) == [Failed]


def test_the_event_shows_the_arguments_as_they_were_given() -> None:
    def change(params: dict[str, Any]) -> str:
        params["text"] = "changed"
        params["list"].append("changed")
        return "fine"

    context = ToolContext()
    tool = Tool[Any, Any]("change", "Changes", change, arguments=shape_of(dict[str, Any]))
    given: dict[str, Any] = {"text": "given", "list": ["given"]}
    assert execute(tool, given, context=context).success
    (event,) = context.session[ToolInvoked].all()
    assert event.params == {"text": "given", "list": ["given"]}


def test_a_dispatcher_that_breaks_does_not_break_the_call(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(InProcessDispatcher):
        __slots__ = ()

        def dispatch(self, event: object) -> DispatchResult:
            raise OSError(f"no room for {type(event).__name__}")

    context = ToolContext(session=Session(Broken()))
    assert execute(_writing(lambda: "fine"), context=context).success
    assert "could not be dispatched" in caplog.text


# ── threads and loops ──


@pytest.mark.promise("CALL-OVERRUN")
def test_a_handler_that_overruns_its_limit_can_change_nothing_any_more() -> None:
    context, go, done = ToolContext(), threading.Event(), threading.Event()
    refused, codes = list[type](), list[str]()

    def handler(_params: Params, *, context: ToolContext) -> None:
        session = context.session
        session[Note].append(Note("in time"))
        go.wait()
        inner = _writing(lambda: "fine")
        for change in (
            lambda: session[Note].append(Note("late")),
            lambda: session.restore(session.snapshot()),
            lambda: session.transaction().__enter__(),
        ):
            try:
                change()
            except Conflict as conflict:
                refused.append(type(conflict))
        codes.append(execute(inner, context=context).code)
        done.set()

    result = execute(Tool[Params, None]("slow", "Slow", handler, timeout=0.05), context=context)
    assert result.code == "timeout"
    go.set()
    assert done.wait(30)
    assert (refused, codes) == ([Conflict] * 3, ["conflict"])
    assert _notes(context.session) == []
    assert _outcomes(context.session) == [TimedOut, Failed]


def test_a_handler_in_a_thread_of_its_own_writes_in_the_transaction_of_its_call() -> None:
    context = ToolContext()
    tool = replace(_writing(lambda: ToolResult.error(threading.current_thread().name)), timeout=30.0)
    assert execute(tool, context=context).message == "tool write"
    assert _notes(context.session) == []


@pytest.mark.anyio
async def test_a_blocking_handler_is_awaited_in_a_thread_that_keeps_the_transaction() -> None:
    context = ToolContext()
    threads: set[int] = set()
    results = ["fine", ToolResult.error("no")]

    def then() -> object:
        threads.add(threading.get_ident())
        return results.pop(0)

    tool = _writing(then)
    assert (await aexecute(tool, {"text": "kept"}, context=context)).success
    assert not (await aexecute(tool, {"text": "undone"}, context=context)).success
    assert threading.get_ident() not in threads
    assert _notes(context.session) == ["kept"]


@pytest.mark.promise("CALL-OVERRUN")
@pytest.mark.anyio
async def test_a_blocking_handler_whose_caller_was_cancelled_can_change_nothing_any_more() -> None:
    context, loop = ToolContext(), asyncio.get_running_loop()
    begun, go, done = asyncio.Event(), threading.Event(), asyncio.Event()
    refused: list[Conflict] = []

    def wait() -> None:
        loop.call_soon_threadsafe(begun.set)
        go.wait(30)
        try:
            context.session[Note].append(Note("late"))
        except Conflict as conflict:
            refused.append(conflict)
        loop.call_soon_threadsafe(done.set)

    task = asyncio.create_task(aexecute(_writing(wait), context=context))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await done.wait()
    assert (len(refused), _notes(context.session), _outcomes(context.session)) == (1, [], [Failed])


async def _async_handler(params: Params, *, context: ToolContext) -> str:
    await asyncio.sleep(0)
    context.session[Note].append(Note(params.text))
    return params.text


def test_an_asynchronous_handler_runs_from_code_without_a_loop() -> None:
    context = ToolContext()
    tool = Tool[Params, str]("say", "Says", _async_handler)
    assert execute(tool, {"text": "hi"}, context=context).message == "hi"
    assert _notes(context.session) == ["hi"]


@pytest.mark.anyio
async def test_an_asynchronous_handler_called_blocking_from_a_loop_says_what_to_do() -> None:
    tool = Tool[Params, str]("say", "Says", _async_handler)
    result = execute(tool, {"text": "hi"})
    assert (result.success, result.code) == (False, "invalid_tool")
    assert "await aexecute" in result.message
    from_thread = await asyncio.to_thread(execute, tool, {"text": "hi"})
    assert from_thread.message == "hi"


@pytest.mark.promise("CALL-CONCURRENT")
def test_calls_at_once_on_one_session_undo_only_themselves() -> None:
    context = ToolContext()
    meeting = threading.Barrier(6)

    def work(number: int) -> None:
        def meet() -> object:
            meeting.wait()
            return "fine" if number % 2 else ToolResult.error("no")

        execute(_writing(meet), {"text": str(number)}, context=context)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(_notes(context.session)) == ["1", "3", "5"]
    assert len(context.session[ToolInvoked].all()) == 6


def test_facts_that_policies_learned_at_once_are_all_kept() -> None:
    context = ToolContext(policies=(_Learning(),))
    session = context.session
    with session.transaction() as transaction:
        execute(_writing(lambda: "fine"), {"text": "a"}, context=context)
        contextvars.Context().run(execute, _writing(lambda: "fine"), {"text": "b"}, context=context)
        transaction.rollback()
    assert session[PolicyFacts].all() == (PolicyFacts("learning", frozenset({"b"})),)


class _Learning:
    name = "learning"

    def check(self, call: Call, facts: Facts) -> Decision:
        assert call.arguments["text"] not in facts
        return Allow()

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:
        return facts | {str(call.arguments["text"])} if isinstance(outcome, Done) else facts


# ── surroundings ──


def test_a_handler_finds_resources_by_their_type_and_its_calls_have_their_own_ids() -> None:
    ids: list[str] = []

    def inner(_params: Params, *, context: ToolContext) -> None:
        ids.append(context.call_id)

    def outer(_params: Params, *, context: ToolContext) -> str:
        ids.append(context.call_id)
        execute(Tool[Params, None]("inner", "Inner", inner), context=context)
        execute(Tool[Params, None]("inner", "Inner", inner), context=replace(context, call_id="chosen"))
        note = context.resources.get(Note)
        return note.text if note else ""

    context = ToolContext(resources=ResourceRegistry.of(Note("found")).merged({int: 3}), call_id="given")
    assert execute(Tool[Params, str]("outer", "Outer", outer), context=context).message == "found"
    assert (ids[0], ids[2]) == ("given", "chosen")
    assert len(set(ids)) == 3
    assert context.resources.get(int) == 3
    assert context.resources.get(str, "none") == "none"


def test_a_toolbox_refuses_two_tools_of_one_name_and_keeps_their_order() -> None:
    first, second = _writing(lambda: "a"), _writing(lambda: "b")
    assert [tool.name for tool in Toolbox.of([first, first])] == ["write"]
    with pytest.raises(Conflict, match="two tools are named 'write'"):
        Toolbox.of([first, second])


@pytest.mark.anyio
async def test_a_toolbox_answers_for_unknown_names_of_any_kind() -> None:
    box = Toolbox.of([])
    long = "x\n" * 10_000
    given: list[Any] = [None, {"a": 1}, [1]]
    for arguments in given:
        result = await box.aexecute(long, arguments)
        assert (result.code, len(result.message) < 300) == ("unknown_tool", True)
    assert len(box.context.session[ToolInvoked].all()) == 3
    assert (await Toolbox.of([_writing(lambda: "a")]).aexecute("write", {})).success
