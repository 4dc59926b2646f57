"""Structured output: what the model is told, and how its answer is read."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from outfitter.errors import InvalidArguments, PromptValidationError
from outfitter.prompt import MarkdownSection, Prompt, PromptTemplate, StructuredOutput


@dataclass(frozen=True)
class Finding:
    title: str
    severity: int = 0


SECTION = MarkdownSection(title="Task", key="task", template="Review.")


def form() -> StructuredOutput[Finding]:
    found = Prompt(PromptTemplate[Finding](ns="t", key="t", sections=[SECTION])).render().structured_output
    assert found is not None
    return found


@pytest.mark.promise("STRUCTURED-OUTPUT")
def test_a_template_with_an_output_tells_the_model_its_form() -> None:
    rendered = Prompt(PromptTemplate[Finding](ns="t", key="t", sections=[SECTION])).render()
    assert rendered.text.startswith("## Task\n\nReview.\n\n## Response Format\n\n")
    assert '"severity"' in rendered.text
    assert (form().type, form().container) == (Finding, "object")


def test_a_template_without_an_output_asks_for_no_form() -> None:
    for template in (PromptTemplate(ns="t", key="t", sections=[SECTION]),):
        rendered = Prompt(template).render()
        assert rendered.structured_output is None
        assert "Response Format" not in rendered.text


@pytest.mark.promise("STRUCTURED-OUTPUT")
@pytest.mark.parametrize(
    "answer",
    [
        '{"title": "a", "severity": 3}',
        '```json\n{"title": "a", "severity": 3}\n```',
        'Here you are:\n```\n{"title": "a", "severity": 3}\n```\nGood luck!',
        'Sure. {"title": "a", "severity": 3} That is all.',
        ' 3 of {them}: {"title": "a", "severity": 3}',
    ],
)
def test_an_answer_becomes_a_value(answer: str) -> None:
    assert form().parse(answer) == Finding("a", 3)


def test_a_part_of_a_broken_answer_is_not_the_answer() -> None:
    with pytest.raises(InvalidArguments):
        form().parse('{"title": "outer", "also": {"title": "inner"}, "severity":')


def test_a_value_is_taken_as_it_is() -> None:
    assert form().parse({"title": "a"}) == Finding("a")


@pytest.mark.parametrize(
    "answer", ["", "no", "{", '{"title": 3}', '{"severity": 1}', "[" * 100_000, '"text"', "{" * 9, '{"title": NaN}']
)
def test_an_answer_that_does_not_fit_is_told(answer: str) -> None:
    with pytest.raises(InvalidArguments, match="prompt 't:t': the answer"):
        form().parse(answer)


def test_a_list_may_be_asked_for_and_may_come_wrapped() -> None:
    template = PromptTemplate[list[Finding]](ns="t", key="t", sections=[SECTION])
    output = Prompt(template).render().structured_output
    assert output is not None
    assert output.container == "array"
    assert output.parse('[{"title": "a"}]') == [Finding("a")]
    assert output.parse('{"items": [{"title": "a"}]}') == [Finding("a")]


def test_an_output_is_a_dataclass() -> None:
    with pytest.raises(PromptValidationError, match="must be a dataclass"):
        Prompt(PromptTemplate[str](ns="t", key="t", sections=[SECTION]))


def test_a_subclass_may_declare_the_output() -> None:
    class Review(PromptTemplate[Finding]):
        pass

    output = Prompt(Review(ns="t", key="t", sections=[SECTION])).render().structured_output
    assert output is not None
    assert output.type is Finding
