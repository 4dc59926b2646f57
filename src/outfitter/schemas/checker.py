"""Does a value fit a JSON Schema? Judged by jsonschema-rs, offline, compiled when the first value comes.

A keyword that means nothing (a pattern that no engine understands, a type that does not exist) is left out of the
check: the server that wrote it will judge it itself. What would take endless work is a fault, not a hang.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

from outfitter.basics import quote
from outfitter.errors import InvalidSchema
from outfitter.schemas.keywords import Node, as_node, lean
from outfitter.schemas.messages import Teller
from outfitter.schemas.references import Library
from outfitter.schemas.shape import Fault
from outfitter.schemas.soundness import measure, plain, word_for
from outfitter.schemas.structure import MOST_WORK, Graph, Structure

if TYPE_CHECKING:
    import jsonschema_rs

_BACKTRACKS = 10_000
_PATTERN_BYTES = 5_000_000
_MOST_REPAIRS = 16
_MOST_REPAIRED_NODES = 20_000
_MOST_DETAILS = 10_000
_MOST_FIRST = 1_000
MOST_FAULTS = 50
_MOST_AS_WRITTEN = 2_000
"""A longer schema is mostly notes, which its validator would keep."""


class Checker:
    """What judges values by one schema, given as JSON text."""

    __slots__ = ("_needs_object", "_registry", "_structure", "_text", "_validator", "_works")

    def __init__(self, text: str, structure: Structure, *, needs_object: bool = False) -> None:
        """Keep the text; nothing is compiled yet."""
        self._text = text
        self._structure = structure
        self._needs_object = needs_object
        self._validator: jsonschema_rs.Validator | None = None
        self._registry: jsonschema_rs.Registry | None = None
        self._works: dict[int, int] = {}

    def faults(self, value: object) -> tuple[Fault, ...]:
        """Everything that is wrong with the value, or as much of it as can be told in reasonable time."""
        value = plain(value)
        kind = word_for(value)
        if self._needs_object and kind != "object":
            return (Fault("", f"expected object, got {kind}"),)
        nodes, depth, unsound = measure(value)
        if unsound:
            return unsound[:MOST_FAULTS]
        work = self._work_at(depth)
        if work > MOST_WORK:
            return (Fault("", f"is nested {depth} levels deep, too deep for a schema with so many alternatives"),)
        validator = self._compiled()
        return () if validator.is_valid(value) else self._tell(validator, value, nodes, work)

    def is_valid(self, value: object) -> bool:
        """Whether nothing is wrong with the value."""
        return not self.faults(value)

    def branch(self, pointer: str) -> jsonschema_rs.Validator:
        """The validator of one schema inside this one."""
        import jsonschema_rs

        if self._registry is None:
            schema, _ = prepare(json.loads(self._text), self._structure)
            self._registry = jsonschema_rs.Registry([("outfitter:schema", schema)])
        entry: Node = {"$ref": f"outfitter:schema#{pointer}", "$schema": self._structure.dialect}
        return jsonschema_rs.validator_for(
            entry, registry=self._registry, offline=True, pattern_options=_patterns(), validate_formats=False
        )

    def _compiled(self) -> jsonschema_rs.Validator:
        if self._validator is None:
            self._validator = self._as_written() or prepare(json.loads(self._text), self._structure)[1]
        return self._validator

    def _as_written(self) -> jsonschema_rs.Validator | None:
        """The validator of the text itself: most schemas are written as they should be, and this is twice as fast."""
        import jsonschema_rs

        if len(self._text) > _MOST_AS_WRITTEN or not self._structure.is_current:
            return None
        try:
            return _compile(self._text)
        except jsonschema_rs.ValidationError:
            return None

    def _work_at(self, depth: int) -> int:
        if self._structure.work is not None:
            return self._structure.work
        if depth not in self._works:
            self._works[depth] = Graph.of(Library.of(json.loads(self._text))).work_at(depth)
        return self._works[depth]

    def _tell(self, validator: jsonschema_rs.Validator, value: Any, nodes: int, work: int) -> tuple[Fault, ...]:  # noqa: ANN401 - any JSON
        teller = Teller(self._text)
        if work <= _MOST_FIRST and nodes * work <= _MOST_DETAILS:
            faults = [fault for error in validator.iter_errors(value) for fault in teller.tell(error)]
            return tuple(dict.fromkeys(faults))[:MOST_FAULTS]
        if work <= _MOST_FIRST:
            return tuple(dict.fromkeys(teller.tell(_first_error(validator, value))))[:MOST_FAULTS]
        return (Fault("", "does not fit the schema, which has too many alternatives to say where"),)


def _first_error(validator: jsonschema_rs.Validator, value: Any) -> jsonschema_rs.ValidationError:  # noqa: ANN401 - any JSON
    import jsonschema_rs

    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return error
    raise InvalidSchema("its validator does not agree with itself")


def prepare(schema: Node, structure: Structure) -> tuple[Node, jsonschema_rs.Validator]:
    """The schema without notes and meaningless keywords, in a dialect that is known; and its validator."""
    import jsonschema_rs

    usable = cast("Node", lean(schema))
    usable["$schema"] = structure.dialect
    for _ in range(max(2, min(_MOST_REPAIRS, _MOST_REPAIRED_NODES // structure.nodes))):
        try:
            return usable, _compile(usable)
        except jsonschema_rs.ValidationError as error:
            usable = _repaired(usable, error)
    raise InvalidSchema("too many of its keywords mean nothing")


def _compile(schema: Node | str) -> jsonschema_rs.Validator:
    import jsonschema_rs

    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=_patterns(), validate_formats=False)


def _patterns() -> jsonschema_rs.FancyRegexOptions:
    """The linear engine where it can, and few steps back where it cannot."""
    import jsonschema_rs

    return jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_BYTES)


def _repaired(schema: Node, error: jsonschema_rs.ValidationError) -> Node:
    """The schema without the keyword that the error is about."""
    path = error.instance_path
    if not path:
        raise InvalidSchema(f"it cannot be compiled: {quote(error.message)}")
    repaired = deepcopy(schema)
    owner, keyword, place = repaired, str(path[0]), cast("Any", repaired)
    for part in path:
        node = as_node(place)
        if node is not None:
            owner, keyword = node, str(part)
        place = place[part]
    if len(path) > 1 and path[-2] == "properties":
        owner[keyword] = True  # the property stays known
    else:
        del owner[keyword]
    return repaired
