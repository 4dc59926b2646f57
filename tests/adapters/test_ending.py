"""On every adapter: how an evaluation ends, and what is left behind."""

from __future__ import annotations

import anyio
import pytest

from outfitter.adapters import PromptResponse, StopReason
from outfitter.calls import ToolInvoked
from outfitter.errors import Invalid, Unavailable
from outfitter.session import Session
from outfitter.testing import ModelHangs, ModelSays, ModelUsage, ScriptedModel, model_calls
from outfitter.tools import Budget, BudgetTracker, Deadline, Tool
from tests.adapters.kit import Candidate, Play, play, prompt_of, quick_pool, scripted


def ping() -> str:
    """Answer."""
    return "pong"


PROMPT = prompt_of(Tool.wrap(ping))


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-LIMITS")
async def test_a_spent_budget_of_calls_is_told_to_the_model_which_may_still_answer(candidate: Candidate) -> None:
    turn = model_calls(candidate.shown("ping"))
    played = await Play(candidate, (turn, turn, ModelSays("once")), budget=Budget(max_tool_calls=1)).of(PROMPT)
    assert [event.result.code for event in played.events] == ["", "budget_spent"]
    assert played.requests[-1].answers[1].startswith("Error (budget_spent)")
    assert played.response.text == "once"


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-LIMITS")
async def test_nothing_is_begun_when_the_tokens_are_spent(candidate: Candidate) -> None:
    turns = (model_calls(candidate.shown("ping")), ModelSays("never asked for"))
    played = await Play(candidate, turns, budget=Budget(max_total_tokens=17)).of(PROMPT)
    assert (played.response.stop_reason, played.response.rounds) == (StopReason.BUDGET, 1)
    assert "18 of 17 tokens" in played.response.detail
    assert (len(played.requests), played.events) == (1, ())
    with pytest.raises(Unavailable, match="budget"):
        played.response.require()


@pytest.mark.anyio
async def test_several_evaluations_spend_one_budget(candidate: Candidate) -> None:
    tracker = BudgetTracker(Budget(max_output_tokens=10))
    with ScriptedModel(ModelSays("one", ModelUsage(1, 11)), ModelSays("two")) as model:
        adapter = candidate.make(model)
        assert (await adapter.aevaluate(PROMPT, budget=tracker)).text == "one"
        assert (await adapter.aevaluate(PROMPT, budget=tracker)).stop_reason is StopReason.BUDGET
        assert len(model.requests) == 1
    assert tracker.output_tokens == 11


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-LIMITS")
async def test_a_model_that_does_not_answer_is_waited_for_until_the_deadline(candidate: Candidate) -> None:
    played = await Play(candidate, (ModelHangs(),), deadline=Deadline.after(1)).of(PROMPT)
    assert (played.response.stop_reason, played.response.rounds) == (StopReason.DEADLINE, 0)


@pytest.mark.anyio
async def test_after_the_deadline_nothing_is_started_and_nothing_asked(candidate: Candidate) -> None:
    prompt = prompt_of(mcps=[scripted("demo", "add")])
    late = Budget(deadline=Deadline.after(-1))
    played = await Play(candidate, (), budget=late).of(prompt)
    assert (played.response.stop_reason, played.response.rounds) == (StopReason.DEADLINE, 0)
    assert played.requests == ()


@pytest.mark.anyio
async def test_a_model_that_goes_on_calling_is_stopped(candidate: Candidate) -> None:
    turn = model_calls(candidate.shown("ping"))
    played = await play(candidate, PROMPT, turn, turn, turn, max_rounds=2)
    assert (played.response.stop_reason, played.response.rounds) == (StopReason.ROUNDS, 2)
    assert len(played.events) == 1


@pytest.mark.anyio
async def test_an_answer_that_was_cut_or_refused_says_so(candidate: Candidate) -> None:
    cut = (await play(candidate, PROMPT, ModelSays("half an ans", is_cut=True))).response
    assert (cut.stop_reason, cut.text) == (StopReason.LENGTH, "half an ans")
    silent = (await play(candidate, PROMPT, ModelSays("", is_cut=True))).response
    assert (silent.stop_reason, silent.text) == (StopReason.LENGTH, "")
    refused = (await play(candidate, PROMPT, ModelSays("I will not", is_refusal=True))).response
    assert (refused.stop_reason, refused.detail) == (StopReason.REFUSED, "I will not")


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-CANCEL")
async def test_cancelling_cancels_the_calls_and_lets_the_servers_go(candidate: Candidate) -> None:
    begun = anyio.Event()

    async def wait_for_ever() -> None:
        """Wait."""
        begun.set()
        await anyio.sleep_forever()

    session = Session()
    prompt = prompt_of(Tool.wrap(wait_for_ever), mcps=[scripted("demo", "add")])
    with ScriptedModel(model_calls(candidate.shown("wait_for_ever"))) as model:
        async with quick_pool() as pool, anyio.create_task_group() as group:
            adapter = candidate.make(model, pool=pool)

            async def evaluate() -> None:
                await adapter.aevaluate(prompt, session=session)

            group.start_soon(evaluate)
            await begun.wait()
            assert [connection.name for connection in pool.connections()] == ["demo"]
            group.cancel_scope.cancel()
        assert pool.connections() == ()
    assert [event.result.code for event in session[ToolInvoked].all()] == ["cancelled"]


@pytest.mark.anyio
async def test_servers_are_let_go_when_the_provider_fails(candidate: Candidate) -> None:
    with ScriptedModel() as model:
        async with quick_pool() as pool:
            with pytest.raises(Invalid, match="the script has ended"):
                await candidate.make(model, pool=pool).aevaluate(prompt_of(mcps=[scripted("demo", "add")]))
            assert pool.connections() == ()


@pytest.mark.promise("ADAPT-TWINS")
def test_a_prompt_is_evaluated_without_a_loop_too(candidate: Candidate) -> None:
    turns = (model_calls(candidate.shown("demo_add"), {"a": 2, "b": 2}), ModelSays("four"))
    with ScriptedModel(*turns) as model:
        response: PromptResponse[None] = candidate.make(model).evaluate(prompt_of(mcps=[scripted("demo", "add")]))
    assert (response.text, response.tool_calls[0].result.message) == ("four", '{"sum": 4}')


@pytest.mark.anyio
async def test_a_blocking_evaluation_in_a_loop_is_refused_with_a_word_about_its_twin(candidate: Candidate) -> None:
    with ScriptedModel() as model, pytest.raises(Invalid, match="await aevaluate"):
        candidate.make(model).evaluate(PROMPT)
