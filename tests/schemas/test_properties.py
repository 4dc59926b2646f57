"""What holds for every schema and value: the reference validator agrees, and nothing is lost on the way."""

from __future__ import annotations

import dataclasses
import json

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outfitter.schemas import read_schema
from tests.schemas.making import SCHEMAS, Json, is_object, values_for

PROFILE = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Json, Json]:
    """A schema and a value for it, which may not fit."""
    schema = draw(SCHEMAS)
    return schema, draw(values_for(schema))


@pytest.mark.promise("SCHEMA-MEANING")
@PROFILE
@given(cases())
def test_the_reference_validator_agrees(case: tuple[Json, Json]) -> None:
    schema, value = case
    reference: Json = jsonschema.Draft202012Validator
    expected = is_object(value) and reference(schema).is_valid(value)
    assert (read_schema(schema).faults(value) == ()) == expected


@pytest.mark.promise("SCHEMA-MEANING")
@PROFILE
@given(cases())
def test_a_valid_value_survives_loading_and_dumping(case: tuple[Json, Json]) -> None:
    schema, value = case
    before = json.dumps(schema)
    shape = read_schema(schema, "some_tool")
    if not shape.faults(value):
        loaded = shape.load(value)
        dumped = shape.dump(loaded)
        assert json.dumps(dumped, sort_keys=True) == json.dumps(value, sort_keys=True)
        assert shape.load(dumped) == loaded
        assert dataclasses.replace(loaded) == loaded
        assert type(loaded) is shape.type
    assert json.dumps(schema) == before
    assert shape.schema == schema


@PROFILE
@given(cases())
def test_a_fault_points_at_a_place_of_the_value(case: tuple[Json, Json]) -> None:
    schema, value = case
    for fault in read_schema(schema).faults(value):
        place = value
        parts = [part.replace("~1", "/").replace("~0", "~") for part in fault.path.split("/")[1:]]
        for index, part in enumerate(parts):
            if is_object(place) and part not in place:
                assert fault.message == "is a required property"
                assert index == len(parts) - 1
                break
            place = place[part] if is_object(place) else place[int(part)]
