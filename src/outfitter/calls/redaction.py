"""Arguments as they may be remembered: plain JSON, with secrets masked.

A secret is what stands under a name that usually holds one, what the tool's schema marks as one (``writeOnly``,
``format: password``), and any ``Secret``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from outfitter.basics import MASK, Secret, looks_sensitive
from outfitter.catalog import JsonValue

_DEEPEST = 64
_WIDEST_INTEGER = 1024
_SCALAR = (str, int, float)
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
Schema = Mapping[str, JsonValue]


def redact(arguments: Mapping[str, object], schema: Schema | None = None) -> dict[str, JsonValue]:
    """A copy of the arguments that may be logged, shown and stored."""
    return _members(arguments, None if schema is None else _Place(schema, (schema,)), 1)


def marks_secrets(schema: JsonValue | Schema) -> bool:
    """Whether a schema says of any value that it is a secret; only such a schema is worth giving to ``redact``."""
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            members = cast("Mapping[str, object]", node)
            if _is_marked(members):
                return True
            waiting.extend(members.values())
        elif isinstance(node, list):
            waiting.extend(cast("list[object]", node))
    return False


def _is_marked(schema: Mapping[str, object]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


class _Place:
    """What a schema says about the value at one place: every subschema that applies there."""

    __slots__ = ("root", "schemas")

    def __init__(self, root: Schema, schemas: tuple[Schema, ...]) -> None:
        self.root = root
        self.schemas = tuple(self._spread(schemas))

    @property
    def is_secret(self) -> bool:
        return any(_is_marked(schema) for schema in self.schemas)

    def member(self, key: str) -> _Place | None:
        return self._below(("properties", key), ("additionalProperties",))

    def item(self) -> _Place | None:
        return self._below(("items",))

    def _below(self, *ways: tuple[str, ...]) -> _Place | None:
        found = (_at(schema, way) for schema in self.schemas for way in ways)
        schemas = tuple(schema for schema in found if schema is not None)
        return _Place(self.root, schemas) if schemas else None

    def _spread(self, schemas: tuple[Schema, ...]) -> Iterator[Schema]:
        """The schemas with what they refer to and what they choose from, each once."""
        waiting, seen = list(schemas), set[int]()
        while waiting:
            schema = waiting.pop()
            if id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            waiting.extend(self._next(schema))

    def _next(self, schema: Schema) -> Iterator[Schema]:
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target = _at(self.root, tuple(reference[2:].split("/")))
            if target is not None:
                yield target
        for word in _ALTERNATIVES:
            choices = schema.get(word)
            if isinstance(choices, list):
                yield from (choice for choice in choices if isinstance(choice, Mapping))


def _at(schema: Schema, way: tuple[str, ...]) -> Schema | None:
    found: object = schema
    for step in way:
        key = step.replace("~1", "/").replace("~0", "~")
        found = cast("Mapping[str, object]", found).get(key) if isinstance(found, Mapping) else None
    return cast("Schema", found) if isinstance(found, Mapping) else None


def _members(members: Mapping[Any, object], place: _Place | None, depth: int) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = {}
    for key, value in members.items():
        name = key if isinstance(key, str) else str(_plain(key))
        below = None if place is None else place.member(name)
        shown[name] = _masked(value) if looks_sensitive(name) else _shown(value, below, depth)
    return shown


def _masked(value: object) -> JsonValue:
    """A mask for anything that says something; yes, no and nothing say nothing."""
    return value if value is None or isinstance(value, bool) else MASK


def _shown(value: object, place: _Place | None, depth: int) -> JsonValue:
    if place is not None and place.is_secret:
        return _masked(value)
    if value is None or isinstance(value, _SCALAR):
        return _plain(value)
    if depth > _DEEPEST or isinstance(value, Secret):
        return MASK
    if isinstance(value, list | tuple):
        below = None if place is None else place.item()
        return [_shown(item, below, depth + 1) for item in cast("list[object]", value)]
    if isinstance(value, Mapping):
        return _members(cast("Mapping[Any, object]", value), place, depth + 1)
    return _plain(value)


def _plain(value: object) -> JsonValue:
    """A value that any JSON writer takes; what is not JSON is told by its type."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return int(value) if bits <= _WIDEST_INTEGER else f"<integer of {bits} bits>"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return f"<{type(value).__name__}>"
