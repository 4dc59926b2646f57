"""On every adapter: an answer in the form that the prompt asks for, mended once where it does not fit."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from outfitter.adapters import StopReason
from outfitter.errors import Invalid, Unavailable
from outfitter.prompt import MarkdownSection, Prompt, PromptTemplate
from outfitter.testing import ModelSays
from tests.adapters.kit import Candidate, play, prompt_of


@dataclass(frozen=True, slots=True)
class Line:
    number: int


@dataclass(frozen=True, slots=True)
class Verdict:
    approved: bool
    lines: list[Line]


SECTION = MarkdownSection(title="Task", key="task", template="Review it.")
ONE = Prompt(PromptTemplate[Verdict](ns="kit", key="one", sections=[SECTION]))
MANY = Prompt(PromptTemplate[list[Verdict]](ns="kit", key="many", sections=[SECTION]))
GOOD = '{"approved": true, "lines": [{"number": 7}]}'


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-OUTPUT")
async def test_an_answer_becomes_the_value_that_the_prompt_asks_for(candidate: Candidate) -> None:
    played = await play(candidate, ONE, ModelSays(GOOD))
    assert played.response.output == Verdict(approved=True, lines=[Line(7)])
    assert played.response.require() is played.response.output
    assert '"approved"' in played.requests[0].text


@pytest.mark.anyio
async def test_a_list_is_read_bare_and_wrapped_in_an_object(candidate: Candidate) -> None:
    for text in (f"[{GOOD}]", f'{{"items": [{GOOD}]}}'):
        played = await play(candidate, MANY, ModelSays(text))
        assert played.response.output == [Verdict(approved=True, lines=[Line(7)])]


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-OUTPUT")
async def test_an_answer_that_does_not_fit_is_mended_once(candidate: Candidate) -> None:
    played = await play(candidate, ONE, ModelSays('{"approved": "yes", "lines": []}'), ModelSays(GOOD))
    assert (played.response.is_complete, played.response.rounds) == (True, 2)
    assert "/approved: expected boolean" in played.requests[1].text


@pytest.mark.anyio
async def test_an_answer_that_does_not_fit_again_is_no_output(candidate: Candidate) -> None:
    played = await play(candidate, ONE, ModelSays("Looks good!"), ModelSays('{"approved": true}'))
    response = played.response
    assert (response.stop_reason, response.output) == (StopReason.INVALID_OUTPUT, None)
    assert response.text == '{"approved": true}'
    with pytest.raises(Unavailable, match="lines"):
        response.require()


@pytest.mark.anyio
async def test_a_prompt_without_a_form_has_no_output(candidate: Candidate) -> None:
    played = await play(candidate, prompt_of(), ModelSays("plain"))
    assert played.response.output is None
    with pytest.raises(Invalid, match="asks for no structured output"):
        played.response.require()
