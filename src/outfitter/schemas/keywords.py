"""Where a JSON Schema holds other schemas: the one table that every walk over a schema uses.

An in-place keyword judges the same value again, a child keyword judges a part of it. What is in no list here is data,
and data is never read as a schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

Node: TypeAlias = dict[str, Any]

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
ALTERNATIVES = ("anyOf", "oneOf")
IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
IN_PLACE_ONES = ("not", "if", "then", "else")
IN_PLACE_MAPS = ("dependentSchemas", "dependencies")
CHILD_ONES = (
    "additionalProperties",
    "items",
    "additionalItems",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
)
CHILD_LISTS = ("prefixItems", "items")
CHILD_MAPS = ("properties", "patternProperties")
DEFINITIONS = ("$defs", "definitions")

ONES = frozenset((*IN_PLACE_ONES, *CHILD_ONES))
LISTS = frozenset((*IN_PLACE_LISTS, *CHILD_LISTS))
MAPS = frozenset((*IN_PLACE_MAPS, *CHILD_MAPS, *DEFINITIONS))
_SCHEMAS = ONES | LISTS | MAPS
NAMES = frozenset(("$id", "$anchor", "$dynamicAnchor"))
INNER = _SCHEMAS | NAMES | frozenset(REFERENCES)
"""What a schema without schemas in it, references and names does not have; most schemas are such leaves."""
DIALECTAL = frozenset(("pattern", "exclusiveMinimum", "exclusiveMaximum"))
NOTES = frozenset(("title", "description", "default", "examples", "example", "$comment", "deprecated"))
"""What tells and does not judge."""
TYPES = frozenset(("string", "number", "integer", "boolean", "null", "array", "object"))


def as_node(value: object) -> Node | None:
    """The value as a schema with keywords; None for true, false and everything that is no schema."""
    return cast("Node", value) if isinstance(value, dict) else None


def nodes_in(value: object) -> Iterator[Node]:
    """The schemas with keywords in a list."""
    if isinstance(value, list):
        yield from (entry for entry in cast("list[Any]", value) if isinstance(entry, dict))


def nodes_under(value: object) -> Iterator[tuple[str, Node]]:
    """The schemas with keywords in a map, with their keys."""
    if isinstance(value, dict):
        yield from ((key, entry) for key, entry in cast("Node", value).items() if isinstance(entry, dict))


def subschemas(node: Node) -> list[Node]:
    """Every schema with keywords directly inside this one."""
    found: list[Node] = []
    for keyword in node.keys() & _SCHEMAS:
        value = node[keyword]
        if isinstance(value, list):
            found += [entry for entry in cast("list[Any]", value) if keyword in LISTS and isinstance(entry, dict)]
        elif isinstance(value, dict) and keyword in MAPS:
            found += [entry for entry in cast("Node", value).values() if isinstance(entry, dict)]
        elif isinstance(value, dict) and keyword in ONES:
            found.append(cast("Node", value))
    return found


def lean(schema: object) -> Any:  # noqa: ANN401 - any JSON in, the same JSON without its notes out
    """A copy of a schema without what only tells: it judges the same and is much smaller."""
    node = as_node(schema)
    if node is None:
        return schema
    return {
        keyword: _lean_value(keyword, value) if keyword in _HOLDING else value
        for keyword, value in node.items()
        if keyword not in NOTES
    }


_HOLDING = _SCHEMAS | {"required"}


def _lean_value(keyword: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
    entries = as_node(value)
    if keyword in MAPS and entries is not None:
        return {key: lean(entry) for key, entry in entries.items()}
    if keyword in LISTS and type(value) is list:
        return [lean(entry) for entry in cast("list[Any]", value)]
    if keyword == "required":
        return _without_repetition(value)
    return lean(value) if keyword in ONES else value


def _without_repetition(names: object) -> object:
    """The names once each: a name twice is a slip, and would make the whole list meaningless."""
    listed = cast("list[Any]", names) if isinstance(names, list) else []
    return (
        list(dict.fromkeys(listed))
        if listed and all(isinstance(name, str) for name in listed)
        else cast("object", names)
    )
