"""A schema that somebody else wrote, as a shape: read once, compiled and typed when it is first used.

The text of the schema is kept, not the object that was given: whoever gave it may change it, and the shape does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from outfitter.catalog import JsonValue
from outfitter.errors import InvalidArguments, InvalidSchema
from outfitter.schemas.checker import Checker
from outfitter.schemas.deferred import Reading
from outfitter.schemas.keywords import Node, as_node
from outfitter.schemas.loading import load_with
from outfitter.schemas.naming import class_name
from outfitter.schemas.reading import Reader
from outfitter.schemas.records import to_json
from outfitter.schemas.references import Library
from outfitter.schemas.shape import Fault, Shape
from outfitter.schemas.structure import MOST_CHARACTERS, inspect_schema

_MOST_TOLD = 8


def read_schema(schema: object, name: str = "", *, is_result: bool = False) -> Shape:
    """The shape of a foreign tool's input, or of its result; InvalidSchema when it cannot be used safely.

    The arguments of a call are an object, so the schema of an input must allow one; a result may be anything.
    """
    node = as_node(schema)
    if node is None:
        raise InvalidSchema(f"a schema must be a JSON object, not {type(schema).__name__}")
    structure = inspect_schema(node)
    if not is_result and not _may_be_object(node, Library(node)):
        raise InvalidSchema("the arguments of a tool are an object, and its schema does not allow one")
    try:
        text = json.dumps(node, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidSchema(f"it is not JSON: {error}") from None
    if len(text) > MOST_CHARACTERS:
        raise InvalidSchema(f"it is too large (more than {MOST_CHARACTERS:,} characters)")
    checker = Checker(text, structure, needs_object=not is_result)
    return _ForeignShape(
        text, class_name(name, "Result" if is_result else "Params"), checker, needs_object=not is_result
    )


class _ForeignShape:
    """A shape read off a JSON Schema."""

    __slots__ = ("_checker", "_name", "_needs_object", "_reading", "_text")

    def __init__(self, text: str, name: str, checker: Checker, *, needs_object: bool) -> None:
        """Keep what is needed to make the rest."""
        self._text = text
        self._name = name
        self._checker = checker
        self._needs_object = needs_object
        self._reading: Reading | None = None

    def __repr__(self) -> str:
        """The name of its type."""
        return f"<shape {self._name}>"

    @property
    def schema(self) -> Mapping[str, JsonValue]:
        """The JSON Schema as it was given; a new copy each time."""
        return json.loads(self._text)

    @property
    def type(self) -> Any:  # noqa: ANN401 - a dataclass, or any type for a result
        """The Python type; made when it is first asked for."""
        return self._read().annotation

    def faults(self, value: JsonValue) -> tuple[Fault, ...]:
        """Everything that is wrong with a JSON value."""
        return self._checker.faults(value)

    def load(self, value: JsonValue) -> Any:  # noqa: ANN401 - an instance of the type
        """The value as an instance; InvalidArguments when it does not fit."""
        faults = self._checker.faults(value)
        if faults:
            raise invalid(faults)
        return load_with(self._read().loader, value)

    def dump(self, value: object) -> JsonValue:
        """The instance as JSON, with the original keys."""
        return to_json(value)

    def _read(self) -> Reading:
        if self._reading is None:
            root = cast("Node", json.loads(self._text))
            self._reading = Reader(root, self._judge).read_root(self._name, is_object=self._needs_object)
        return self._reading

    def _judge(self, pointer: str) -> Callable[[Any], bool]:
        return self._checker.branch(pointer).is_valid


def invalid(faults: tuple[Fault, ...]) -> InvalidArguments:
    """The error that tells these faults."""
    told = "; ".join(map(str, faults[:_MOST_TOLD]))
    return InvalidArguments(told, faults=tuple((fault.path, fault.message) for fault in faults))


def _may_be_object(node: Node, library: Library) -> bool:
    kinds = node.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        return False
    options = [node["const"]] if "const" in node else node.get("enum", [{}])
    if isinstance(options, list) and not any(isinstance(option, dict) for option in cast("list[Any]", options)):
        return False
    if "$ref" in node and not _may(_filled(library).resolve(node["$ref"], node), library):
        return False
    if not all(_may(part, library) for part in _listed(node, "allOf")):
        return False
    choices = [_listed(node, keyword) for keyword in ("anyOf", "oneOf") if _listed(node, keyword)]
    return all(any(_may(choice, library) for choice in listed) for listed in choices)


def _may(schema: object, library: Library) -> bool:
    node = as_node(schema)
    return schema is True if node is None else _may_be_object(node, library)


def _filled(library: Library) -> Library:
    if not library.bases:
        library.add(library.root, library.root)
    return library


def _listed(node: Node, keyword: str) -> list[Any]:
    found = node.get(keyword)
    return cast("list[Any]", found) if isinstance(found, list) else []
