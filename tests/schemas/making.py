"""Random schemas of the forms that real tools have, and random values for them, some of them spoilt."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

from hypothesis import strategies as st

Json: TypeAlias = Any

KEYS = st.sampled_from(
    [
        "id",
        "name",
        "class",
        "a-b",
        "x",
        "per_page",
        "$filter",
        "é",
        "9",
        "_meta",
        "createdAt",
        "import",
        "extra_",
        "api_key",
    ]
)
TEXTS = st.sampled_from(["", "a", "b", "main", "a/b.txt", "naïve", "2026-03-04", "true", "null", "x" * 40])
INTEGERS = st.one_of(st.integers(-5, 120), st.sampled_from([2**53 + 1, -(2**63), 10**30]))
NUMBERS = st.one_of(INTEGERS, st.sampled_from([0.0, -0.0, 5.0, 1.5, 1e300]))
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=5,
)


def is_object(value: object) -> bool:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


@st.composite
def _texts(draw: st.DrawFn) -> Json:
    schema: Json = {"type": "string"}
    if draw(st.booleans()):
        schema[draw(st.sampled_from(["minLength", "maxLength"]))] = draw(st.integers(0, 5))
    if draw(st.integers(0, 4)) == 0:
        schema["pattern"] = draw(st.sampled_from(["^[a-z]+$", r"^\d{4}-\d{2}-\d{2}$", "a", r"^(?!\s*$).+"]))
    if draw(st.booleans()):
        schema |= {"description": "a text", "default": "a"}
    return schema


@st.composite
def _numbers(draw: st.DrawFn) -> Json:
    schema: Json = {"type": draw(st.sampled_from(["integer", "number"]))}
    for bound in ("minimum", "maximum", "exclusiveMinimum"):
        if draw(st.integers(0, 3)) == 0:
            schema[bound] = draw(st.integers(-5, 100))
    return schema


LEAVES = st.one_of(
    _texts(),
    _numbers(),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({}),
    st.lists(TEXTS, min_size=1, max_size=4, unique=True).map(lambda options: {"type": "string", "enum": options}),
    TEXTS.map(lambda value: {"const": value}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": "object"}),
    st.just({"$ref": "#/$defs/shared"}),
)


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    properties = draw(st.dictionaries(KEYS, inner, max_size=4))
    schema: Json = {"type": "object", "properties": properties}
    if properties and draw(st.booleans()):
        schema["required"] = draw(st.lists(st.sampled_from(sorted(properties)), unique=True, max_size=3))
    closing = draw(st.sampled_from([None, None, False, True, {"type": "string"}]))
    if closing is not None:
        schema["additionalProperties"] = closing
    return schema


def _composed(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        _objects(inner),
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda items: {"type": "array", "items": items, "minItems": 1, "maxItems": 3}),
        inner.map(lambda entry: {"type": "object", "additionalProperties": entry}),
        several.map(lambda branches: {"anyOf": [*branches, {"type": "null"}]}),
        several.map(lambda branches: {"oneOf": branches}),
        several.map(lambda branches: {"allOf": branches}),
        several.map(lambda items: {"type": "array", "prefixItems": items}),
    )


SHARED: Json = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/shared"}}},
    "required": ["name"],
}
SCHEMAS = _objects(st.recursive(LEAVES, _composed, max_leaves=6)).map(
    lambda schema: {**schema, "$defs": {"shared": copy.deepcopy(SHARED)}}
)


@st.composite
def values_for(draw: st.DrawFn, schema: Json, depth: int = 0) -> Json:
    """A value that mostly fits the schema: at each place it may also be anything at all."""
    if schema in (True, False) or draw(st.integers(0, 19)) == 0 or depth > 5:
        return draw(ANYTHING)
    if schema.get("$ref"):
        return draw(values_for(SHARED, depth + 1))
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return draw(values_for(draw(st.sampled_from(schema[keyword])), depth + 1))
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else draw(st.sampled_from(schema["enum"]))
    kinds = schema.get("type", "anything")
    return draw(_value_of(kinds if isinstance(kinds, str) else draw(st.sampled_from(kinds)), schema, depth))


def _value_of(kind: str, schema: Json, depth: int) -> st.SearchStrategy[Json]:
    simple = {"string": TEXTS, "integer": INTEGERS, "number": NUMBERS, "boolean": st.booleans(), "null": st.none()}
    if kind == "array":
        items = schema.get("items", (schema.get("prefixItems") or [{}])[0])
        return st.lists(values_for(items, depth + 1), max_size=3)
    if kind == "object":
        return _object_for(schema, depth)
    return simple.get(kind, ANYTHING)


@st.composite
def _object_for(draw: st.DrawFn, schema: Json, depth: int) -> Json:
    required = set(schema.get("required", ()))
    value: Json = {}
    for key, inner in schema.get("properties", {}).items():
        if draw(st.integers(0, 19)) != 0 if key in required else draw(st.booleans()):
            value[key] = draw(values_for(inner, depth + 1))
    if draw(st.integers(0, 3)) == 0:
        value[draw(KEYS)] = draw(values_for(schema.get("additionalProperties", {}), depth + 1))
    return value
