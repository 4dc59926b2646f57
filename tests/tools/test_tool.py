"""What a tool is made of: names, handlers of every form, functions with plain parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest

from outfitter.calls import ToolResult
from outfitter.errors import InvalidTool
from outfitter.tools import Tool, ToolContext, aexecute, execute


@dataclass(frozen=True, slots=True)
class Params:
    text: str = "hi"


async def shout(text: str, times: int = 1, tags: list[str] = []) -> str:  # noqa: B006 - what a careless author writes
    """Say it loudly."""
    tags.append("changed")
    return text.upper() * times + f"/{len(tags)}"


def plain(params: Params) -> str:
    return params.text


def with_context(params: Params, *, context: ToolContext) -> str:
    return f"{params.text} {bool(context.call_id)}"


def with_keywords(params: Params, **more: Any) -> str:  # noqa: ANN401 - anything may come
    return f"{params.text} {sorted(more)}"


def by_keyword(*, params: Params, context: ToolContext) -> str:
    return f"{params.text} {context.adapter}"


def by_keyword_alone(*, params: Params) -> str:
    return params.text


class Callee:
    async def __call__(self, params: Params) -> str:
        return f"{params.text} called"

    def method(self, params: Params) -> str:
        return f"{params.text} method"


@pytest.mark.promise("TOOL-HANDLERS")
@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (plain, "hi"),
        (with_context, "hi True"),
        (with_keywords, "hi ['context']"),
        (by_keyword, "hi outfitter"),
        (by_keyword_alone, "hi"),
        (Callee(), "hi called"),
        (Callee().method, "hi method"),
        (functools.partial(with_context), "hi True"),
    ],
)
def test_handlers_of_every_form_are_called(handler: Any, said: str) -> None:  # noqa: ANN401 - the point of the test
    assert execute(Tool[Params, str]("say", "Says", handler)).message == said


def test_a_handler_without_arguments_is_called_with_or_without_context() -> None:
    assert execute(Tool[None, str]("a", "A", lambda: "none")).message == "none"

    def only_context(*, context: ToolContext) -> str:
        return context.adapter

    assert execute(Tool[None, str]("b", "B", only_context)).message == "outfitter"


@pytest.mark.promise("TOOL-HANDLERS")
def test_the_form_of_the_arguments_is_read_from_the_handler() -> None:
    tool = Tool[Any, Any]("say", "Says", with_context)
    assert tool.params_type is Params
    assert (tool.source, tool.tool) == ("native", "say")
    assert "text" in str(tool.input_schema)


@pytest.mark.promise("TOOL-HANDLERS")
@pytest.mark.anyio
async def test_a_function_is_wrapped_with_its_name_docstring_and_parameters() -> None:
    tool = Tool.wrap(shout)
    assert (tool.name, tool.description) == ("shout", "Say it loudly.")
    for _ in range(2):
        assert (await aexecute(tool, {"text": "hi", "times": 2})).message == "HIHI/1"
    assert (await aexecute(tool, {"times": 2})).code == "invalid_arguments"
    assert (await aexecute(tool, {"text": "hi", "times": "x"})).code == "invalid_arguments"


def test_a_function_that_takes_one_dataclass_and_context_is_wrapped_as_it_is() -> None:
    def say(params: Params, *, context: ToolContext) -> ToolResult[str]:
        """Say it."""
        return ToolResult.ok(params.text, context.adapter)

    result = execute(Tool.wrap(say), {"text": "yes"})
    assert (result.value, result.message) == ("yes", "outfitter")


def test_what_an_annotation_says_of_a_parameter_reaches_the_schema() -> None:
    def count(number: Annotated[int, msgspec.Meta(description="how many", ge=1)], *, context: ToolContext) -> int:
        """Count."""
        assert context.call_id
        return number

    tool = Tool.wrap(count)
    assert "how many" in str(tool.input_schema)
    assert execute(tool, {"number": 3}).message == "3"
    assert execute(tool, {"number": 0}).code == "invalid_arguments"


def test_a_function_without_parameters_is_wrapped() -> None:
    def now() -> dict[str, list[int]]:
        """Tell the time."""
        return {"ö": [1, 2]}

    result = execute(Tool.wrap(now))
    assert (result.message, result.value) == ('{"ö": [1, 2]}', {"ö": [1, 2]})


@pytest.mark.parametrize(
    ("returned", "message"),
    [(None, ""), ("text", "text"), (True, "true"), (Params("x"), '{"text": "x"}'), (object, "<class 'object'>")],
    ids=["none", "text", "truth", "dataclass", "a class"],
)
def test_a_plain_value_is_told_as_text_or_json(returned: object, message: str) -> None:
    result = execute(Tool[None, Any]("give", "Gives", lambda: returned))
    assert (result.message, result.value, result.success) == (message, returned, True)


def test_a_handler_that_returns_something_to_await_is_told_how_to_be_written() -> None:
    def forgets(params: Params) -> object:
        return shout(params.text)

    result = execute(Tool[Params, str]("say", "Says", forgets))
    assert (result.success, "async def" in result.message) == (False, True)


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 65, "a/b"])
def test_a_name_no_model_could_use_is_refused(name: str) -> None:
    with pytest.raises(InvalidTool, match="invalid tool name"):
        Tool[Params, str](name, "Says", plain)


def _two(first: int, second: int) -> int:
    return first + second


def _unsaid(params: object) -> object:
    return params


_unsaid.__annotations__.clear()
NO_HANDLER: Any = None


@pytest.mark.parametrize(
    ("handler", "timeout", "told"),
    [
        (NO_HANDLER, None, "has no handler"),
        (_two, None, "takes 2 arguments"),
        (plain, 0.0, "a time limit of 0.0 s"),
        (_unsaid, None, "does not say what its arguments are"),
        (max, None, "does not say what it takes"),
    ],
)
def test_a_tool_that_could_not_be_called_is_refused(handler: Any, timeout: float | None, told: str) -> None:  # noqa: ANN401 - the point of the test
    with pytest.raises(InvalidTool, match=told):
        _ = Tool[Any, Any]("a", "A", handler, timeout=timeout).params


def test_a_function_that_cannot_be_wrapped_says_why() -> None:
    def silent(text: str) -> str:
        return text

    def open_ended(*texts: str) -> str:
        """Take any number."""
        return "".join(texts)

    def without_type(text: str) -> str:
        """Say nothing of its argument."""
        return text

    del without_type.__annotations__["text"]
    functions: dict[str, Callable[..., str]] = {"docstring": silent, "'texts'": open_ended, "'text'": without_type}
    for told, function in functions.items():
        with pytest.raises(InvalidTool, match=told):
            Tool.wrap(function)


def test_a_tool_whose_form_cannot_be_read_says_so_when_it_is_called() -> None:
    result = execute(Tool[Any, Any]("a", "A", _unsaid), {})
    assert (result.code, "annotate its first parameter" in result.message) == ("invalid_tool", True)
