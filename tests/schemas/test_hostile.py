"""A schema that wants to hurt costs a bounded time and is refused alone; nothing is fetched, no text is executed."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from outfitter.errors import InvalidSchema
from outfitter.schemas import read_schema
from tests.schemas.hostile import REFUSED, SURVIVED, Json, in_x

BUDGET = 0.25
GENEROUS = 4
"""How much longer than the budget a test may take on a machine that does other things too."""


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Load the validator, so that no test pays for its import."""
    read_schema({}).faults({})


@pytest.mark.promise("SCHEMA-HOSTILE")
@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_schema_is_refused_within_the_budget(name: str) -> None:
    start = time.process_time()
    with pytest.raises(InvalidSchema):
        read_schema(REFUSED[name])
    assert time.process_time() - start < BUDGET * GENEROUS


@pytest.mark.promise("SCHEMA-HOSTILE")
@pytest.mark.parametrize("name", SURVIVED)
def test_a_difficult_schema_is_used_within_the_budget(name: str) -> None:
    schema, value = SURVIVED[name]
    start = time.process_time()
    shape = read_schema(schema)
    faults = shape.faults(value)
    assert shape.type is not None
    assert time.process_time() - start < BUDGET * GENEROUS
    assert faults


def test_others_are_usable_beside_a_refused_one() -> None:
    usable: list[str] = []
    for name, schema in {**REFUSED, "fine": in_x({"type": "string"})}.items():
        try:
            read_schema(schema)
        except InvalidSchema:
            continue
        usable.append(name)
    assert usable == ["fine"]


def test_a_remote_reference_is_not_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.setblocking(False)
        url = f"http://127.0.0.1:{canary.getsockname()[1]}/schema.json"
        for schema in (in_x({"$ref": url}), {"$schema": url, "type": "object"}, {"$id": url, "type": "object"}):
            try:
                read_schema(schema).faults({"x": 1})
            except InvalidSchema as refused:
                assert "outside" in str(refused)  # noqa: PT017 - only one of the three is refused
        with pytest.raises(BlockingIOError):
            canary.accept()


@pytest.mark.promise("SCHEMA-NO-CODE")
def test_names_titles_and_defaults_are_never_executed(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    texts = [code, f"x: {code}", f"'+{code}+'", f'"""\n{code}\n"""', f"{{{code}}}", f"a\n    {code}\n", f"x = {code}):"]
    for text in texts:
        schema: Json = {
            "type": "object",
            "title": text,
            "description": text,
            "properties": {
                text: {"type": "object", "title": text, "properties": {text: {"enum": [text]}}, "default": text}
            },
            "required": [text],
            "$defs": {text: {"title": text}},
        }
        shape = read_schema(schema, text)
        loaded = shape.load({text: {text: text}})
        assert shape.dump(loaded) == {text: {text: text}}
        assert shape.type.__name__.isidentifier()
        repr(loaded)
        shape.faults({})
    assert not marker.exists()


TAKEN: list[Json] = [
    {},
    {"type": "object"},
    {"properties": {"x": {"type": "integer"}}},
    {"type": ["object", "null"], "properties": {}},
    {"$schema": "http://json-schema.org/draft-07/schema#"},
    {"anyOf": [{"type": "object", "properties": {"x": {}}}, {"type": "null"}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
    {"type": "object", "properties": {"x": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"type": "string"}}},
    {
        "$id": "https://example.com/a",
        "type": "object",
        "properties": {"x": {"$ref": "https://example.com/a#/$defs/b"}},
    }
    | {"$defs": {"b": {}}},
    {"type": "object", "properties": {"x": {"$id": "T0", "type": "object", "properties": {"y": {"$ref": "T0"}}}}},
    {"type": "object", "properties": {"x": {"$ref": "#named"}}, "$defs": {"a": {"$anchor": "named"}}},
]


@pytest.mark.parametrize("schema", TAKEN)
def test_what_real_servers_write_is_taken(schema: Json) -> None:
    shape = read_schema(schema)
    assert shape.faults({}) == ()
    assert shape.dump(shape.load({})) == {}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "pattern": "["}, "anything", 5),
        ({"type": "string", "pattern": r"^[^]+$"}, "anything", 5),
        ({"type": "any", "maxLength": 2}, "ab", "abc"),
        ({"type": "string", "required": True}, "ab", 5),
        ({"minimum": 1, "exclusiveMinimum": True}, 2, 1),
        ({"type": "array", "items": [{"type": "string"}]}, ["a"], [1]),
        ({"type": "string", "pattern": r"^(?!\s*$).+"}, "a", " "),
        ({"type": "string", "pattern": r"^[\p{L} '-]{1,100}$"}, "Zoë", "5"),
        ({"type": "object", "required": ["a", "a"]}, {"a": 1}, {}),
    ],
)
def test_a_keyword_that_means_nothing_is_left_out_and_the_rest_still_holds(schema: Json, good: Json, bad: Json) -> None:
    shape = read_schema(in_x(schema))
    assert shape.faults({"x": good}) == ()
    assert [fault.path[:2] for fault in shape.faults({"x": bad})] == ["/x"]


def test_a_property_whose_schema_means_nothing_stays_known() -> None:
    shape = read_schema({"type": "object", "properties": {"x": "string"}, "additionalProperties": False})
    assert shape.faults({"x": 1}) == ()
    assert shape.faults({"y": 1}) != ()
