"""JSON Schemas as model providers take them: an object at the top, with its properties named there.

What is left out for the provider still holds: every call and every answer is checked against the whole schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from outfitter.catalog import JsonValue
from outfitter.prompt import StructuredOutput

Json: TypeAlias = dict[str, Any]
_NOT_AT_THE_TOP = ("allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "$schema", "$id")
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_WRAPPER = "items"


def arguments_form(schema: Mapping[str, JsonValue]) -> Json:
    """The form of a tool's arguments; properties that only alternatives name are named too."""
    form: Json = {key: value for key, value in schema.items() if key not in _NOT_AT_THE_TOP}
    properties: Json = {}
    for part in (*_alternatives(schema), schema):
        named = part.get("properties")
        if isinstance(named, Mapping):
            properties |= cast("Mapping[str, Any]", named)
    return {**form, "type": "object", "properties": properties}


def _alternatives(schema: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    for word in _ALTERNATIVES:
        choices = schema.get(word)
        if isinstance(choices, list):
            yield from (choice for choice in choices if isinstance(choice, Mapping))


def output_form(output: StructuredOutput[Any]) -> Json:
    """The form of the answer; a list is asked for as an object that holds it, which ``parse`` understands."""
    schema = dict(output.schema)
    if output.container == "object":
        return schema
    definitions = schema.pop("$defs", None)
    wrapped: Json = {
        "type": "object",
        "properties": {_WRAPPER: schema},
        "required": [_WRAPPER],
        "additionalProperties": False,
    }
    return wrapped if definitions is None else {**wrapped, "$defs": definitions}
