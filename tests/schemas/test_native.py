"""Our own dataclasses as shapes: their schema, their values, and what has no form in JSON."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from outfitter.errors import InvalidArguments, InvalidTool
from outfitter.schemas import Fault, shape_of
from tests.schemas.making import Json


@dataclass(frozen=True)
class Node:
    name: str = field(metadata={"description": "what it is called"})
    kids: list[Node] = field(default_factory=list["Node"])


@dataclass(frozen=True, slots=True)
class Search:
    query: str = field(metadata={"description": "what to look for"})
    limit: int = field(default=10, metadata={"description": "how many"})
    root: Node | None = None
    since: datetime | None = None

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError("limit must not be negative")


@dataclass(frozen=True)
class Untellable:
    fine: int
    handler: Callable[[], None]


def test_the_schema_is_an_object_with_described_properties_and_nothing_else() -> None:
    schema: Json = shape_of(Search).schema
    assert schema["type"] == "object"
    assert schema["properties"]["query"] == {"type": "string", "description": "what to look for"}
    assert schema["properties"]["limit"] == {"type": "integer", "default": 10, "description": "how many"}
    assert schema["required"] == ["query"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Node"]["additionalProperties"] is False
    assert schema["$defs"]["Node"]["properties"]["name"]["description"] == "what it is called"


def test_a_type_that_contains_itself_keeps_its_definition() -> None:
    shape = shape_of(Node)
    none: list[Json] = []
    value: Json = {"name": "a", "kids": [{"name": "b", "kids": none}]}
    assert shape.load(value) == Node("a", [Node("b")])
    assert shape.dump(Node("a", [Node("b")])) == value
    assert shape.faults({"name": "a", "kids": [{"name": 1}]}) == (
        Fault("/kids/0/name", "expected string, got integer 1"),
    )


def test_values_are_loaded_as_instances() -> None:
    shape = shape_of(Search)
    loaded = shape.load({"query": "a", "root": {"name": "n"}, "since": "2026-01-02T03:04:05Z"})
    assert loaded.root == Node("n")
    assert loaded.since.year == 2026
    assert shape.load({"query": "a", "limit": 5.0}).limit == 5


def test_what_only_the_type_knows_is_a_fault_with_its_place() -> None:
    shape = shape_of(Search)
    assert [fault.path for fault in shape.faults({"query": "a", "since": "yesterday"})] == ["/since"]
    assert "negative" in shape.faults({"query": "a", "limit": -1})[0].message
    with pytest.raises(InvalidArguments) as caught:
        shape.load({"query": "a", "since": "yesterday"})
    assert caught.value.faults[0][0] == "/since"


@pytest.mark.parametrize("nothing", [None, type(None)])
def test_no_arguments_is_an_empty_object(nothing: Json) -> None:
    shape = shape_of(nothing)
    assert shape.schema["type"] == "object"
    assert shape.load({}) is None
    assert shape.dump(None) == {}
    assert shape.faults({"a": 1}) == (Fault("", "unknown property 'a'; known: none"),)


def test_a_field_without_a_form_in_json_is_named() -> None:
    with pytest.raises(InvalidTool, match="'handler'"):
        shape_of(Untellable)


def test_the_door_loads_no_validator_until_one_is_needed() -> None:
    code = "import sys, outfitter.schemas; print([m for m in ('jsonschema_rs', 'msgspec') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
