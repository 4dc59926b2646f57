"""Our own types as shapes: dataclasses, described and loaded by msgspec, judged like every foreign schema.

The same checker judges both kinds, so the same mistake is told the same way. What a JSON Schema cannot say (a date, a
``__post_init__`` that refuses) msgspec finds afterwards.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast, get_args, get_type_hints

from outfitter.basics import quote
from outfitter.catalog import JsonValue
from outfitter.errors import InvalidTool
from outfitter.schemas.checker import Checker
from outfitter.schemas.foreign import invalid
from outfitter.schemas.keywords import Node, as_node, subschemas
from outfitter.schemas.shape import Fault, Shape
from outfitter.schemas.soundness import pointer_of
from outfitter.schemas.structure import inspect_schema

_AnyType: TypeAlias = Any
_WHERE = re.compile(r" - at `(?P<key>key in )?\$(?P<path>.*)`$", re.DOTALL)
_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")


def shape_of(kind: _AnyType) -> Shape:
    """The shape of a Python type; None for a tool without arguments. InvalidTool when it has no JSON form."""
    if kind is None or kind is type(None):
        return _TypeShape(type(None), {"type": "object", "properties": {}, "additionalProperties": False})
    return _TypeShape(kind, _schema_of(kind))


class _TypeShape:
    """A shape read off a Python type."""

    __slots__ = ("_checker", "_text", "type")

    def __init__(self, kind: _AnyType, schema: Node) -> None:
        """Keep the type and its schema."""
        self.type: Any = kind
        self._text = json.dumps(schema, separators=(",", ":"))
        self._checker = Checker(self._text, inspect_schema(schema))

    def __repr__(self) -> str:
        """The name of its type."""
        return f"<shape {getattr(self.type, '__name__', self.type)}>"

    @property
    def schema(self) -> Mapping[str, JsonValue]:
        """The JSON Schema of the type; a new copy each time."""
        return json.loads(self._text)

    def faults(self, value: JsonValue) -> tuple[Fault, ...]:
        """Everything that is wrong with a JSON value."""
        faults = self._checker.faults(value)
        return faults or self._converted(value)[1]

    def load(self, value: JsonValue) -> Any:  # noqa: ANN401 - an instance of the type
        """The value as an instance; InvalidArguments when it does not fit."""
        faults = self._checker.faults(value)
        loaded, unfit = (None, faults) if faults else self._converted(value)
        if unfit:
            raise invalid(unfit)
        return loaded

    def dump(self, value: object) -> JsonValue:
        """The instance as JSON; no arguments at all for None."""
        import msgspec

        if value is None and self.type is type(None):
            return {}
        return cast("JsonValue", msgspec.to_builtins(value))

    def _converted(self, value: Any) -> tuple[Any, tuple[Fault, ...]]:  # noqa: ANN401 - any JSON
        import msgspec

        if self.type is type(None):
            return None, ()
        try:
            return msgspec.convert(value, self.type), ()
        except msgspec.ValidationError as error:
            fault = _fault_of(str(error))
        try:  # 5.0 is an integer in JSON Schema, and the schema has agreed already
            return msgspec.convert(value, self.type, strict=False), ()
        except msgspec.ValidationError:
            return None, (fault,)


def _fault_of(message: str) -> Fault:
    """The fault in a message of msgspec, which ends with the place."""
    place = _WHERE.search(message)
    if place is None:
        return Fault("", _lowered(message))
    steps: list[str | int] = [step["key"] or step["index"] for step in _STEP.finditer(place["path"])]
    while "..." in steps:  # any key of a dict: msgspec does not say which, so the dict is named
        del steps[steps.index("...") :]
    return Fault(pointer_of(steps), _lowered(message[: place.start()]))


def _lowered(message: str) -> str:
    return f"{message[:1].lower()}{message[1:]}".replace("`", "")


def _schema_of(kind: _AnyType) -> Node:
    """The schema with the object at its root, closed objects, and the descriptions of the fields."""
    import msgspec

    try:
        schema = msgspec.json.schema(kind)
    except (TypeError, NameError) as error:
        raise InvalidTool(_untellable(kind, error), hint="use types that JSON has, or dataclasses of them") from None
    definitions = as_node(schema.get("$defs")) or {}
    for name, cls in _dataclasses_in(kind):
        _describe(definitions.get(name), cls)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        own = reference.removeprefix("#/$defs/")
        schema = {**definitions[own], "$defs": definitions}
        if not _refers(schema, reference):
            del definitions[own]
        if not definitions:
            del schema["$defs"]
    for node in _nodes(schema):
        if "properties" in node:
            node.setdefault("additionalProperties", False)
    return schema


def _nodes(schema: Node) -> Iterator[Node]:
    yield schema
    for inner in subschemas(schema):
        yield from _nodes(inner)


def _refers(schema: Node, reference: str) -> bool:
    return any(node.get("$ref") == reference for node in _nodes(schema))


def _dataclasses_in(kind: _AnyType, seen: set[Any] | None = None) -> Iterator[tuple[str, Any]]:
    """Every dataclass in a type, with its name."""
    seen = set() if seen is None else seen
    if dataclasses.is_dataclass(kind) and kind not in seen:
        seen.add(kind)
        yield cast("Any", kind).__name__, kind
        for hint in get_type_hints(kind).values():
            yield from _dataclasses_in(hint, seen)
    for argument in get_args(kind):
        yield from _dataclasses_in(argument, seen)


def _describe(schema: object, cls: _AnyType) -> None:
    node = as_node(schema)
    properties = as_node((node or {}).get("properties")) or {}
    for entry in dataclasses.fields(cls):
        described = properties.get(entry.name)
        if "description" in entry.metadata and isinstance(described, dict):
            described["description"] = entry.metadata["description"]


def _untellable(kind: _AnyType, error: Exception) -> str:
    """Which field has no JSON form."""
    import msgspec

    name = getattr(kind, "__name__", str(kind))
    try:
        hints = get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
    except NameError as unknown:
        return f"the type {quote(name)} cannot be read: {unknown}"
    for field, hint in hints.items():
        try:
            msgspec.json.schema(hint)
        except (TypeError, NameError) as reason:
            return f"field {quote(field)} of {quote(name)} has no JSON form: {str(reason).splitlines()[0]}"
    return f"the type {quote(name)} has no JSON form: {str(error).splitlines()[0]}"
