"""What a server's answer means: text, typed value, failure, and answers that are too large or not what was promised."""

from __future__ import annotations

import base64
import dataclasses
import tracemalloc
from typing import Any

import pytest

from outfitter.bridge import ResultLimits, read_answer
from outfitter.catalog import JsonValue
from outfitter.schemas import Shape, read_schema
from tests.bridge.kit import value_of

SUM: dict[str, JsonValue] = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
ITEMS: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "integer"}}},
    "required": ["items"],
}


def promise(schema: dict[str, JsonValue] = SUM) -> Shape:
    return read_schema(schema, name="add", is_result=True)


def text(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": one} for one in texts]


@pytest.mark.promise("BRIDGE-RESULTS")
def test_without_a_promise_the_value_is_the_answer() -> None:
    answer = {"content": text("one", "two"), "isError": False}
    result = read_answer(answer, None)
    assert (result.message, result.value, result.success, result.raw) == ("one\ntwo", answer, True, answer)


@pytest.mark.promise("BRIDGE-RESULTS")
def test_an_empty_answer_is_a_success() -> None:
    assert read_answer({"content": []}, None).message == "Success"


@pytest.mark.promise("BRIDGE-RESULTS")
def test_a_tool_that_says_that_it_failed_failed() -> None:
    result = read_answer({"content": text("no such file"), "isError": True}, promise())
    assert (result.message, result.value, result.success, result.code) == ("no such file", None, False, "tool_error")
    assert result.raw is not None
    assert read_answer({"isError": True}, None).message


@pytest.mark.promise("B11")
def test_what_is_promised_comes_typed_and_the_text_stays_though_they_disagree() -> None:
    answer = {"content": text("the sum is five"), "structuredContent": {"sum": 3}}
    result = read_answer(answer, promise())
    assert (result.success, value_of(result).sum, result.message) == (True, 3, "the sum is five")
    assert dataclasses.is_dataclass(result.value)
    assert result.raw == answer


@pytest.mark.promise("B10")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"content": [], "structuredContent": {"sum": "three"}}, "/sum"),
        ({"content": [], "structuredContent": {}}, "sum"),
        ({"content": text("3")}, "sent none"),
        ({"content": [], "structuredContent": None}, ""),
    ],
)
def test_an_answer_that_breaks_its_promise_is_a_failure_and_kept(answer: dict[str, Any], told: str) -> None:
    result = read_answer(answer, promise())
    assert (result.success, result.value, result.code) == (False, None, "schema_mismatch")
    assert told in result.message
    assert result.raw == answer


@pytest.mark.promise("BRIDGE-RESULTS")
def test_what_cannot_be_read_as_text_is_named() -> None:
    data = base64.b64encode(bytes(12_000)).decode()
    content: list[object] = [
        {"type": "image", "mimeType": "image/png", "data": data},
        {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "x/y", "blob": "AAAA"}},
        {"type": "resource"},
        {"type": "hologram"},
        {},
        "not a block",
    ]
    assert read_answer({"content": content}, None).message.splitlines() == [
        "[image image/png, 12 kB]",
        "[audio audio/wav, 3 bytes]",
        "[link to a: file:///a]",
        "inside",
        "[resource file:///c x/y, 3 bytes]",
        "[resource]",
        "[hologram]",
        "[content without a type]",
    ]
    assert read_answer({"content": "nonsense"}, None).message == "Success"


@pytest.mark.promise("B14")
def test_a_huge_text_is_cut_and_says_so() -> None:
    answer = {"content": text("x" * 150_000, "y" * 10)}
    result = read_answer(answer, None)
    assert len(result.message) < 100_100
    assert result.message.endswith("[50010 more characters were left out]")
    assert result.raw == answer
    assert read_answer(answer, None, ResultLimits(characters=10)).message.startswith("xxxxxxxxxx\n[150000 more")


@pytest.mark.promise("B14")
def test_a_million_items_stay_as_they_are_within_bounded_memory() -> None:
    answer: dict[str, Any] = {"content": [], "structuredContent": {"items": list(range(1_000_000))}}
    shape = promise(ITEMS)
    tracemalloc.start()
    result = read_answer(answer, shape)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.success
    assert result.value is answer
    assert peak < 20 * 1_000_000, "no copy of the items, and nothing kept for each"


@pytest.mark.promise("B14")
def test_a_million_wrong_items_are_told_in_few_words() -> None:
    answer: dict[str, Any] = {"structuredContent": {"items": ["no"] * 1_000_000}}
    result = read_answer(answer, promise(ITEMS))
    assert result.code == "schema_mismatch"
    assert len(result.message) < 2_000


def test_values_deep_inside_count() -> None:
    deep: JsonValue = 1
    for _ in range(50):
        deep = [deep]
    answer: dict[str, Any] = {"structuredContent": {"items": [1] * 10, "deep": deep}}
    result = read_answer(answer, promise(ITEMS), ResultLimits(nodes=40))
    assert result.value is answer
