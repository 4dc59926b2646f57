"""On every adapter: the same tools are offered, and each call goes the one path of all calls."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import pytest

from outfitter.adapters import StopReason
from outfitter.calls import ToolResult
from outfitter.policy import SequentialDependencyPolicy
from outfitter.session import Session
from outfitter.testing import Crash, ModelCall, ModelCalls, ModelSays, ScriptedTool, When, model_calls
from outfitter.tools import Tool, ToolContext
from tests.adapters.kit import Candidate, Play, play, prompt_of, scripted


@dataclass(frozen=True, slots=True)
class Note:
    text: str


def note(text: str, *, context: ToolContext) -> str:
    """Keep a note."""
    context.session[Note].append(Note(text))
    return f"noted: {text}"


def spoil(text: str, *, context: ToolContext) -> ToolResult[None]:
    """Keep a note, then fail."""
    context.session[Note].append(Note(text))
    return ToolResult.error("the ink ran out")


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-TOOLS")
async def test_the_model_is_offered_the_prompt_s_tools_and_those_of_its_servers(candidate: Candidate) -> None:
    prompt = prompt_of(Tool.wrap(note), mcps=[scripted("demo", "add", "echo")])
    played = await play(candidate, prompt, ModelSays("nothing to do"))
    assert played.requests[0].tools == tuple(map(candidate.shown, ("note", "demo_add", "demo_echo")))
    assert (played.response.text, played.response.stop_reason) == ("nothing to do", StopReason.DONE)
    assert (played.response.rounds, played.response.usage.total_tokens, played.events) == (1, 18, ())


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-EVENTS")
async def test_every_call_leaves_its_event_and_its_result_reaches_the_model(candidate: Candidate) -> None:
    prompt = prompt_of(Tool.wrap(note), mcps=[scripted("demo", "add")])
    turns = (
        model_calls(candidate.shown("note"), {"text": "begin"}),
        model_calls(candidate.shown("demo_add"), {"a": 1, "b": 2}),
        ModelSays("three"),
    )
    played = await play(candidate, prompt, *turns)
    assert [(event.name, event.adapter, event.mcp_server) for event in played.events] == [
        ("note", candidate.name, None),
        ("demo_add", "mcp:demo", "demo"),
    ]
    assert played.requests[-1].answers == ("noted: begin", '{"sum": 3}')
    made = played.response.tool_calls
    assert [(call.name, call.arguments, call.result.success) for call in made] == [
        ("note", {"text": "begin"}, True),
        ("demo_add", {"a": 1, "b": 2}, True),
    ]
    assert [call.call_id for call in made] == [event.call_id for event in played.events]
    assert (played.response.rounds, played.response.usage.input_tokens) == (3, 33)


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-DENY")
async def test_a_policy_refuses_a_call_and_the_model_is_told_why(candidate: Candidate) -> None:
    policy = SequentialDependencyPolicy({"add": {"note"}})
    prompt = prompt_of(Tool.wrap(note), mcps=[scripted("demo", "add")], policies=[policy])
    add = model_calls(candidate.shown("demo_add"), {"a": 1, "b": 2})
    turns = (add, model_calls(candidate.shown("note"), {"text": "ready"}), add, ModelSays("three"))
    played = await play(candidate, prompt, *turns)
    assert [(event.name, event.decision) for event in played.events] == [
        ("demo_add", "deny"),
        ("note", "allow"),
        ("demo_add", "allow"),
    ]
    denied, _, done = played.requests[-1].answers
    assert "policy" in denied
    assert "note" in denied
    assert done == '{"sum": 3}'


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-UNDO")
async def test_a_failed_call_leaves_the_session_as_it_was(candidate: Candidate) -> None:
    session = Session()
    turns = (
        model_calls(candidate.shown("note"), {"text": "kept"}),
        model_calls(candidate.shown("spoil"), {"text": "lost"}),
        ModelSays("done"),
    )
    played = await Play(candidate, turns, session).of(prompt_of(Tool.wrap(note), Tool.wrap(spoil)))
    assert session[Note].all() == (Note("kept"),)
    assert played.requests[-1].answers[1] == "Error (tool_error): the ink ran out"
    assert [event.result.success for event in played.events] == [True, False]


@pytest.mark.anyio
async def test_a_server_that_dies_in_a_call_does_not_end_the_evaluation(candidate: Candidate) -> None:
    server = scripted("demo", "add", faults=(Crash(When(method="tools/call", times=1)),))
    turns = (
        model_calls(candidate.shown("demo_add"), {"a": 1, "b": 2}),
        model_calls(candidate.shown("note"), {"text": "went on"}),
        ModelSays("done"),
    )
    played = await play(candidate, prompt_of(Tool.wrap(note), mcps=[server]), *turns)
    assert played.requests[-1].answers[0].startswith("Error (upstream_lost)")
    assert [event.result.success for event in played.events] == [False, True]
    assert played.response.is_complete


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-PARALLEL")
async def test_the_calls_of_one_turn_are_made_at_the_same_time(candidate: Candidate) -> None:
    came = {"a": anyio.Event(), "b": anyio.Event()}

    async def meet(me: str, other: str) -> str:
        """Wait for the other."""
        came[me].set()
        with anyio.fail_after(30):
            await came[other].wait()
        return f"{me} met {other}"

    name = candidate.shown("meet")
    both = ModelCalls((ModelCall(name, {"me": "a", "other": "b"}), ModelCall(name, {"me": "b", "other": "a"})))
    played = await play(candidate, prompt_of(Tool.wrap(meet)), both, ModelSays("done"))
    assert played.requests[-1].answers == ("a met b", "b met a")
    assert [call.result.message for call in played.response.tool_calls] == ["a met b", "b met a"]


@pytest.mark.anyio
async def test_what_cannot_be_called_is_told_to_the_model_and_recorded(candidate: Candidate) -> None:
    turns = (
        model_calls(candidate.shown("missing")),
        model_calls(candidate.shown("note"), "{not json"),
        model_calls(candidate.shown("note"), {"text": 7}),
        ModelSays("I give up"),
    )
    played = await play(candidate, prompt_of(Tool.wrap(note)), *turns)
    codes = [event.result.code for event in played.events]
    assert codes == ["unknown_tool", "invalid_arguments", "invalid_arguments"]
    assert [answer.split(":")[0] for answer in played.requests[-1].answers] == [f"Error ({code})" for code in codes]


@pytest.mark.anyio
async def test_a_tool_with_a_very_long_name_can_be_called(candidate: Candidate) -> None:
    long = "calculate_" + "really_" * 12 + "slowly"
    prompt = prompt_of(mcps=[scripted("demo", ScriptedTool(long, kind="echo"))])
    offered = (await play(candidate, prompt, ModelSays("none"))).requests[0].tools[0]
    assert len(offered) <= 64
    played = await play(candidate, prompt, model_calls(offered, {"x": 1}), ModelSays("done"))
    assert played.response.tool_calls[0].result.success


@pytest.mark.anyio
async def test_a_tool_without_arguments_is_called_with_none(candidate: Candidate) -> None:
    def ping() -> str:
        """Answer."""
        return "pong"

    played = await play(
        candidate, prompt_of(Tool.wrap(ping)), model_calls(candidate.shown("ping"), ""), ModelSays("ok")
    )
    assert played.requests[-1].answers == ("pong",)
