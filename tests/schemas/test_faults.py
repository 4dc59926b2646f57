"""What is told about a value that does not fit: the place of the fault, and a sentence a model can act on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from outfitter.errors import InvalidArguments
from outfitter.schemas import Fault, Shape, read_schema, shape_of
from tests.schemas.making import Json


def faults(schema: dict[str, Any], value: Json) -> list[tuple[str, str]]:
    return [(fault.path, fault.message) for fault in read_schema(schema, is_result=True).faults(value)]


def in_object(schema: Json, **more: Json) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, **more}


@pytest.mark.parametrize(
    ("schema", "value", "path", "message"),
    [
        (in_object({"type": "integer"}), {"x": "s"}, "/x", "expected integer, got string 's'"),
        (in_object({"type": ["integer", "null"]}), {"x": []}, "/x", "expected integer or null, got array"),
        (in_object({"type": "integer"}), {"x": 1.5}, "/x", "expected integer, got number 1.5"),
        (in_object({}, required=["x"]), {}, "/x", "is a required property"),
        (in_object({}, additionalProperties=False), {"y": 1}, "", "unknown property 'y'; known: 'x'"),
        (in_object({"enum": ["a", "b"]}), {"x": "c"}, "/x", "must be one of 'a', 'b', got string 'c'"),
        (in_object({"const": "a"}), {"x": "c"}, "/x", "must be 'a', got string 'c'"),
        (in_object({"maximum": 5}), {"x": 6}, "/x", "must be at most 5, got integer 6"),
        (in_object({"minimum": 5}), {"x": 4}, "/x", "must be at least 5, got integer 4"),
        (in_object({"exclusiveMinimum": 5}), {"x": 5}, "/x", "must be greater than 5, got integer 5"),
        (in_object({"minLength": 2}), {"x": "a"}, "/x", "must have at least 2 characters, got string 'a'"),
        (in_object({"maxItems": 1}), {"x": [1, 2]}, "/x", "must have at most 1 items"),
        (in_object({"uniqueItems": True}), {"x": [1, 1]}, "/x", "has equal items, and each must be different"),
        (in_object({"pattern": "^a$"}), {"x": "b"}, "/x", "must match '^a$', got string 'b'"),
        (in_object({"multipleOf": 2}), {"x": 3}, "/x", "must be a multiple of 2, got integer 3"),
        (in_object({"not": {"type": "string"}}), {"x": "a"}, "/x", "is of a form that is not allowed, got string 'a'"),
        (in_object(False), {"x": 1}, "/x", "must not be given, got integer 1"),
        (in_object({"items": {"type": "string"}}), {"x": ["a", 1]}, "/x/1", "expected string, got integer 1"),
        ({"properties": {"a/b~c": {"type": "null"}}}, {"a/b~c": 1}, "/a~1b~0c", "expected null, got integer 1"),
    ],
)
def test_a_fault_names_its_place_and_what_is_expected(schema: Json, value: Json, path: str, message: str) -> None:
    assert faults(schema, value) == [(path, message)]


def test_every_fault_is_told() -> None:
    schema = in_object({"type": "string"}, required=["x", "y"], additionalProperties=False)
    assert {path for path, _ in faults(schema, {"x": 1, "z": 1})} == {"/x", "/y", ""}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_inside_alternatives_the_likely_one_is_told(keyword: str) -> None:
    cat = {
        "type": "object",
        "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
        "required": ["kind"],
    }
    dog = {"type": "object", "properties": {"kind": {"const": "dog"}, "age": {"type": "integer"}}, "required": ["kind"]}
    schema = in_object({"items": {keyword: [{"type": "string"}, cat, dog]}})
    assert faults(schema, {"x": [{"kind": "dog", "age": "s"}]}) == [("/x/0/age", "expected integer, got string 's'")]
    assert faults(schema, {"x": ["a", {"kind": "cat", "lives": "s"}]})[0][0] == "/x/1/lives"
    assert faults(schema, {"x": [5]}) == [("/x/0", "expected string or object, got integer 5")]


def test_alternatives_of_constants_and_of_required_properties_are_told_together() -> None:
    constants = in_object({"anyOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]})
    assert faults(constants, {"x": "c"}) == [("/x", 'expected "a", "b" or null, got string \'c\'')]
    either = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert faults(either, {}) == [("", "needs one of 'a', 'b'")]
    exactly = in_object({"oneOf": [{"type": "integer"}, {"type": "number"}]})
    assert faults(exactly, {"x": 1})[0][1].startswith("fits more than one")


def test_known_properties_are_told_through_references() -> None:
    schema = in_object(
        {"$ref": "#/$defs/d"}, **{"$defs": {"d": {"properties": {"a": {}}, "additionalProperties": False}}}
    )
    assert faults(schema, {"x": {"b": 1}}) == [("/x", "unknown property 'b'; known: 'a'")]


@pytest.mark.parametrize(
    "schema",
    [{"type": "integer"}, {"enum": ["a"]}, {"pattern": "^a"}, {"anyOf": [{"type": "null"}, {"type": "integer"}]}],
)
def test_a_value_under_a_sensitive_key_is_never_quoted(schema: dict[str, Any]) -> None:
    plain = {"properties": {"api_key": schema}}
    nested = {"properties": {"credentials": {"properties": {"value": schema}}}}
    told = [*faults(plain, {"api_key": "hunter2"}), *faults(nested, {"credentials": {"value": "hunter2"}})]
    assert len(told) == 2
    assert "hunter2" not in str(told)


def test_quoted_values_are_short() -> None:
    ((_, message),) = faults(in_object({"type": "integer"}), {"x": "y" * 10_000})
    assert len(message) < 200


def test_the_arguments_must_be_an_object() -> None:
    shape = read_schema({})
    assert shape.faults([]) == (Fault("", "expected object, got array"),)
    assert shape.faults({"anything": 1}) == ()


def test_loading_what_does_not_fit_tells_the_faults() -> None:
    with pytest.raises(InvalidArguments, match="/x: expected integer") as caught:
        read_schema(in_object({"type": "integer"})).load({"x": "s"})
    assert caught.value.faults == (("/x", "expected integer, got string 's'"),)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, float("1e400")])
def test_numbers_that_json_cannot_say_are_faults_wherever_they_are(value: float) -> None:
    assert [path for path, _ in faults({}, {"a": [{"b": value}]})] == ["/a/0/b"]


@pytest.mark.parametrize("value", [2**53 + 1, -(2**63) - 1, 10**400, 5.0, -0.0, 1e308, 5e-324, 0.1])
def test_numbers_are_kept_exactly(value: float) -> None:
    shape = read_schema(in_object({"type": "number"}))
    assert shape.faults({"x": value}) == ()
    dumped = shape.dump(shape.load({"x": value}))
    assert repr(dumped) == repr({"x": value})


def test_large_integers_are_compared_exactly() -> None:
    assert faults(in_object({"maximum": 2**53}), {"x": 2**53 + 1})
    assert not faults(in_object({"const": 2**53 + 1}), {"x": 2**53 + 1})
    assert faults(in_object({"const": 2**53 + 1}), {"x": 2**53})


@pytest.mark.parametrize(
    "value", [{1: "a"}, {"a": object()}, {"a": {1, 2}}, {"a": b"x"}, {"a": "\ud800"}, {"\ud800": 1}]
)
def test_what_is_no_json_is_a_fault(value: Json) -> None:
    assert len(faults({}, value)) == 1


def test_a_value_nested_too_deep_is_a_fault() -> None:
    value: Json = {}
    for _ in range(5_000):
        value = {"a": value}
    assert "nested" in faults({"properties": {"a": {"$ref": "#"}}}, value)[0][1]


@dataclass(frozen=True)
class Label:
    name: str
    color: Literal["red", "blue"] = "red"


@dataclass(frozen=True)
class Params:
    title: str
    labels: list[Label] = field(default_factory=list[Label])
    token: str = ""
    size: int | None = None


FOREIGN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "labels": {"type": "array", "items": {"$ref": "#/$defs/label"}},
        "token": {"type": "string"},
        "size": {"type": ["integer", "null"]},
    },
    "required": ["title"],
    "additionalProperties": False,
    "$defs": {
        "label": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "color": {"enum": ["blue", "red"]}},
            "required": ["name"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"title": 1},
        {"title": "a", "more": 1},
        {"title": "a", "labels": [{"name": "a"}, {}]},
        {"title": "a", "labels": [{"name": "a", "color": "green"}]},
        {"title": "a", "labels": "a"},
        {"title": "a", "token": 5},
        {"title": "a", "size": "large"},
        {"title": math.nan},
    ],
)
def test_our_own_types_and_foreign_schemas_tell_the_same_mistake_the_same_way(value: Json) -> None:
    def told(shape: Shape) -> list[tuple[str, str]]:
        return sorted((fault.path, fault.message) for fault in shape.faults(value))

    assert told(shape_of(Params)) == told(read_schema(FOREIGN)) != []


def test_no_value_is_quoted_where_a_schema_marks_some_as_not_to_be_seen() -> None:
    schema = {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True, "pattern": "^[0-9]+$"}}}
    (fault,) = read_schema(schema).faults({"pin": "hunter2"})
    assert "hunter2" not in fault.message
    assert fault.path == "/pin"
