"""What of a call's arguments may be remembered."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.basics import MASK, Secret
from outfitter.calls import Done, ToolInvoked, ToolResult, marks_secrets, redact
from outfitter.catalog import JsonValue

SCHEMA: dict[str, JsonValue] = {
    "$ref": "#/$defs/Params",
    "$defs": {
        "Params": {
            "type": "object",
            "properties": {
                "pin": {"type": "string", "writeOnly": True},
                "login": {"anyOf": [{"$ref": "#/$defs/Login"}, {"type": "null"}]},
                "logins": {"type": "array", "items": {"$ref": "#/$defs/Login"}},
                "by_name": {"type": "object", "additionalProperties": {"type": "string", "format": "password"}},
                "next": {"$ref": "#/$defs/Params"},
            },
        },
        "Login": {"type": "object", "properties": {"user": {}, "phrase": {"type": "string", "format": "password"}}},
    },
}


@pytest.mark.promise("CALL-REDACTION")
def test_what_stands_under_a_telling_name_is_masked_at_any_depth() -> None:
    given_arguments = {
        "api_key": "k",
        "path": "a.txt",
        "auth": {"password": "p", "user": "u"},
        "list": [{"token": 1}, ("x", {"client_secret": ["deep"]})],
        "secret": True,
        "token": None,
    }
    assert redact(given_arguments) == {
        "api_key": MASK,
        "path": "a.txt",
        "auth": {"password": MASK, "user": "u"},
        "list": [{"token": MASK}, ["x", {"client_secret": MASK}]],
        "secret": True,
        "token": None,
    }


@pytest.mark.promise("CALL-REDACTION")
def test_a_secret_is_masked_wherever_it_stands() -> None:
    shown = redact({"value": Secret("hunter2"), "list": [Secret("hunter2")]})
    assert shown == {"value": MASK, "list": [MASK]}


@pytest.mark.promise("CALL-REDACTION")
def test_what_the_schema_marks_is_masked_also_nested_and_through_references() -> None:
    login = {"user": "ann", "phrase": "p"}
    shown = redact(
        {"pin": "1", "login": login, "logins": [login], "by_name": {"x": "y"}, "next": {"pin": 2, "next": {"pin": 3}}},
        SCHEMA,
    )
    masked = {"user": "ann", "phrase": MASK}
    assert shown == {
        "pin": MASK,
        "login": masked,
        "logins": [masked],
        "by_name": {"x": MASK},
        "next": {"pin": MASK, "next": {"pin": MASK}},
    }


def test_a_schema_says_whether_it_marks_anything() -> None:
    assert marks_secrets(SCHEMA)
    assert marks_secrets({"items": [{"format": "password"}]})
    assert not marks_secrets({"properties": {"a": {"format": "date", "writeOnly": False}}})


def test_a_schema_that_leads_nowhere_or_in_circles_does_no_harm() -> None:
    for reference in ("#", "#/nowhere", "https://example.com/x", "#/properties/a"):
        schema: dict[str, JsonValue] = {"$ref": reference, "properties": {"a": {"$ref": "#/properties/a"}, "b": False}}
        assert redact({"a": {"a": 1}, "b": 2}, schema) == {"a": {"a": 1}, "b": 2}


def test_what_is_no_json_becomes_something_that_is() -> None:
    circle: list[object] = []
    circle.append(circle)
    anything: dict[Any, object] = {"nan": float("nan"), "huge": 10**5000, "set": {1}, "bytes": b"x", 1: "one"}
    anything |= {"circle": circle, 10**5000: 2}
    shown = redact(anything)
    assert shown["nan"] == "nan"
    assert shown["huge"] == "<integer of 16610 bits>"
    assert (shown["set"], shown["bytes"], shown["1"]) == ("<set>", "<bytes>", "one")
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert str(shown)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON))
def test_any_json_can_be_remembered_as_json(arguments: dict[str, object]) -> None:
    json.dumps(redact(arguments), allow_nan=False)


@pytest.mark.promise("CALL-REDACTION")
def test_an_event_shows_neither_result_nor_secret() -> None:
    event = ToolInvoked(
        name="login",
        adapter="outfitter",
        params=redact({"password": "hunter2"}),
        outcome=Done(ToolResult("hunter2", "hunter2")),
        source="native",
        created_at=datetime.now(UTC),
        duration=0.0,
        call_id="1",
    )
    assert "hunter2" not in repr(event)
    assert "hunter2" not in str(event)
    assert event.tool_name == "login"
    assert event.result.message == "hunter2"
