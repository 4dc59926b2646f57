"""Which Python type a JSON Schema means, and the loader that makes its instances.

References and ``allOf`` are read together with the schema they stand in. What a type cannot say is left to the checker,
which judges by the schema itself; so reading never refuses and never guesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, Union, cast
from urllib.parse import quote as percent

from outfitter.schemas.deferred import Annotations, Deferred, Reading
from outfitter.schemas.keywords import ALTERNATIVES, NOTES, REFERENCES, TYPES, Node, as_node
from outfitter.schemas.loading import (
    Branch,
    Judge,
    LinkLoader,
    ListLoader,
    Loader,
    MapLoader,
    RecordLoader,
    UnionLoader,
)
from outfitter.schemas.naming import class_name, field_names, unique
from outfitter.schemas.records import Column, close_record, open_record
from outfitter.schemas.references import Library

_MOST_OPTIONS = 256
_MOST_CLASSES = 500
_MOST_STEPS = 12_000
"""Beyond these, what is left of a document is read as plain dicts and lists, so that reading takes a bounded time."""
_SCALARS: dict[str, Any] = {"string": str, "number": float, "integer": int, "boolean": bool, "null": type(None)}
_TELLING = frozenset(
    ("type", "properties", "enum", "const", "items", "prefixItems", "allOf", *ALTERNATIVES, *REFERENCES)
)
_BESIDE_A_REFERENCE = NOTES | {"$schema", "$id", "$defs", "definitions", "$anchor"}


Trail: TypeAlias = "str | tuple[Trail, str, str | int | None] | None"
"""The way to a schema: a pointer, or a way and what follows; None where it was reached by a name.

Most trails are never followed, so the text is made only when it is needed.
"""


def _pointer(trail: Trail) -> str | None:
    if trail is None or isinstance(trail, str):
        return trail
    above, keyword, key = trail
    last = "" if key is None else f"/{percent(str(key).replace('~', '~0').replace('/', '~1'), safe='')}"
    return f"{_pointer(above)}/{keyword}{last}"


class Part(NamedTuple):
    """A schema and the way to it."""

    node: Node
    trail: Trail

    def at(self, keyword: str, key: str | int | None = None) -> Trail:
        """The trail to something inside."""
        return None if self.trail is None else (self.trail, keyword, key)


_Place: TypeAlias = tuple[Part, Node]
"""A property's schema, and the schema that has the property."""


_ANYTHING = Reading(Any, None)
_LEAVES = {
    kind: Reading(annotation, None)
    for kind, annotation in {**_SCALARS, "array": list[Any], "object": dict[str, Any]}.items()
}
_TAGGING = frozenset(("const", "enum", "$ref"))
_SHAPING = _TELLING - {"type"} | {"additionalProperties"}


def _leaf(node: Node) -> Reading:
    """The reading of a schema that says nothing but its kind."""
    kind = node.get("type")
    if isinstance(kind, str):
        return _LEAVES.get(kind, _ANYTHING)
    kinds = _texts(kind)
    known = TYPES.issuperset(kinds) and len(kinds) > 0
    return Reading(Union[tuple(_LEAVES[each].annotation for each in kinds)], None) if known else _ANYTHING  # noqa: UP007 - the kinds are values


class Reader:
    """Reads one document; each schema in it is read once, so that a schema that contains itself is one class."""

    __slots__ = ("_judge", "_known", "_names", "_root", "_shelf", "_steps")

    def __init__(self, root: Node, judge: Judge) -> None:
        """Keep the document; ``judge`` decides between alternatives that look alike."""
        self._root = root
        self._shelf: Library | None = None
        self._judge = judge
        self._known: dict[int, Reading] = {}
        self._names: dict[str, int] = {}
        self._steps = 0

    def read_root(self, name: str, *, is_object: bool) -> Reading:
        """The reading of the whole document; an object is a class even when it names no properties."""
        root = Part(self._root, "")
        if is_object:
            return self._read_record(root, list(self._parts(root)), name, is_merged=True)
        return self.read(root, name)

    def read(self, part: Part, name: str) -> Reading:
        """The reading of one schema; ``name`` is for the class it may become."""
        if part.node.keys().isdisjoint(_SHAPING):
            return _leaf(part.node)
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return _ANYTHING
        part, name = self._followed(part, name)
        key = id(part.node)
        if key in self._known:
            return self._known[key]
        link = LinkLoader()
        self._known[key] = Reading(Any, link)
        reading = self._read_new(part, name)
        link.target = reading.loader
        self._known[key] = reading
        return reading

    @property
    def _library(self) -> Library:
        """Made at the first reference: most documents have none."""
        if self._shelf is None:
            self._shelf = Library.of(self._root)
        return self._shelf

    def _followed(self, part: Part, name: str) -> tuple[Part, str]:
        """Where a schema that is nothing but a reference leads."""
        while "$ref" in part.node and not (part.node.keys() - _BESIDE_A_REFERENCE - {"$ref"}):
            target = self._target(part)
            if target is None:
                break
            name = class_name(str(part.node["$ref"]).rpartition("/")[2].lstrip("#")) or name
            part = target
        return part, name

    def _target(self, part: Part) -> Part | None:
        reference = part.node["$ref"]
        node = as_node(self._library.resolve(reference, part.node))
        is_pointer = reference == "#" or str(reference).startswith("#/")
        is_own = self._library.bases.get(id(part.node)) is self._root
        return None if node is None else Part(node, reference[1:] if is_pointer and is_own else None)

    def _parts(self, part: Part) -> Iterator[Part]:
        """The schema, what it refers to, and all of ``allOf``, which judge the same value."""
        self._steps += 1
        yield part
        if self._steps > _MOST_STEPS:
            return
        if "$ref" in part.node:
            target = self._target(part)
            if target is not None:
                yield from self._parts(target)
        for inner in _members(part, "allOf"):
            yield from self._parts(inner)

    def _read_new(self, part: Part, name: str) -> Reading:
        parts = list(self._parts(part))
        options = next((found for found in (_options(each.node) for each in parts) if found is not None), None)
        if options is not None:
            return Reading(_literal(options), None)
        branches = _alternatives(parts)
        if branches and not any(_properties(each.node) for each in parts):
            named = [self._name_of(branch, name, number) for number, branch in enumerate(branches, 1)]
            return self._union([(branch, self.read(branch, own)) for branch, own in zip(branches, named, strict=True)])
        kinds = _kinds(parts)
        readings = [(part, self._read_kind(kind, part, parts, name)) for kind in kinds]
        return self._union(readings, kinds) if readings else _ANYTHING

    def _name_of(self, branch: Part, name: str, number: int) -> str:
        title = branch.node.get("title")
        return class_name(title) if isinstance(title, str) and class_name(title) != "Value" else f"{name}{number}"

    def _read_kind(self, kind: str, part: Part, parts: list[Part], name: str) -> Reading:
        if kind == "array":
            return self._read_array(parts, name)
        if kind == "object":
            if any(_properties(each.node) for each in parts) and len(self._names) < _MOST_CLASSES:
                return self._read_record(part, parts, name, is_merged=False)
            entry = self._entry(parts, name)
            return Reading(dict[str, entry.annotation], None if entry.loader is None else MapLoader(entry.loader))
        return Reading(_SCALARS[kind], None)

    def _read_array(self, parts: list[Part], name: str) -> Reading:
        for part in parts:
            items = as_node(part.node.get("items"))
            if items is not None and "prefixItems" not in part.node:
                member = self.read(Part(items, part.at("items")), f"{name}Item")
                loader = None if member.loader is None else ListLoader(member.loader)
                return Reading(list[member.annotation], loader)
        return Reading(list[Any], None)

    def _entry(self, parts: list[Part], name: str) -> Reading:
        for part in parts:
            entry = as_node(part.node.get("additionalProperties"))
            if entry is not None and "patternProperties" not in part.node:
                return self.read(Part(entry, part.at("additionalProperties")), f"{name}Entry")
        return _ANYTHING

    def _read_record(self, part: Part, parts: list[Part], name: str, *, is_merged: bool) -> Reading:
        cls = open_record(unique(name, self._names))
        loader = RecordLoader(cls)
        reading = Reading(cls, loader)
        self._known[id(part.node)] = reading
        found = _all_properties(parts)
        if not is_merged:  # the root stands in no union, so nothing has to tell it from others
            loader.tags = {key: tags for key, places in found.items() if (tags := self._tags(places[0][1]))}
        columns, loaders = self._columns(parts, found, name, is_deferred=is_merged)
        close_record(cls, columns, Annotations if is_merged else dict)
        loader.fields = tuple((column.name, column.key, loaders[column.key]) for column in columns)
        loader.required = frozenset(column.key for column in columns if column.is_required)
        if not is_merged or columns:
            loader.entry = self._entry(parts, name).loader
        return reading

    def _columns(
        self, parts: list[Part], found: dict[str, list[_Place]], name: str, *, is_deferred: bool
    ) -> tuple[list[Column], dict[str, Loader | None]]:
        required = {key for part in parts for key in _texts(part.node.get("required"))}
        for branch in _alternatives(parts):
            for key, places in _all_properties(list(self._parts(branch))).items():
                found.setdefault(key, []).extend(places)
        names = field_names(found)
        columns: list[Column] = []
        loaders: dict[str, Loader | None] = {}
        for key, places in found.items():
            if len(places) == 1 and places[0][1].keys().isdisjoint(_SHAPING):
                reading = _leaf(places[0][1])
            elif is_deferred:
                later = Deferred(partial(self._read_property, key, places, name))
                reading = Reading(later, later)
            else:
                reading = self._read_property(key, places, name)
            columns.append(Column(names[key], key, reading.annotation, key in required))
            loaders[key] = reading.loader
        return columns, loaders

    def _read_property(self, key: str, places: list[_Place], name: str) -> Reading:
        own = f"{name}{class_name(key)}"
        inner = [Part(node, owner.at("properties", key)) for owner, node in places]
        return self._union([(part, self.read(part, own)) for part in inner])

    def _tags(self, node: Node) -> tuple[Any, ...]:
        if node.keys().isdisjoint(_TAGGING):
            return ()
        options = _options(self._followed(Part(node, None), "")[0].node)
        return tuple(options) if options is not None and len(options) <= _MOST_OPTIONS else ()

    def _union(self, readings: list[tuple[Part, Reading]], kinds: list[str] | None = None) -> Reading:
        """The reading of alternatives; ``kinds`` are theirs where each is one kind of the same schema."""
        if len(readings) == 1:
            return readings[0][1]
        annotations = tuple(reading.annotation for _, reading in readings)
        annotation = Any if Any in annotations else Union[annotations]  # noqa: UP007 - the alternatives are values
        if all(reading.loader is None for _, reading in readings):
            return Reading(annotation, None)
        branches = [
            Branch(frozenset([kinds[index]]) if kinds else self._kinds_of(part), reading.loader, _pointer(part.trail))
            for index, (part, reading) in enumerate(readings)
        ]
        return Reading(annotation, UnionLoader(tuple(branches), self._judge))

    def _kinds_of(self, part: Part) -> frozenset[str] | None:
        part, _ = self._followed(part, "")
        parts = list(self._parts(part))
        return None if _alternatives(parts) else frozenset(_kinds(parts)) or None


def _members(part: Part, keyword: str) -> Iterator[Part]:
    members = part.node.get(keyword)
    if isinstance(members, list):
        for index, member in enumerate(cast("list[Any]", members)):
            node = as_node(member)
            if node is not None:
                yield Part(node, part.at(keyword, index))


def _alternatives(parts: list[Part]) -> list[Part]:
    """The first list of alternatives that tells something about the form of the value."""
    for part in parts:
        for keyword in ALTERNATIVES if not part.node.keys().isdisjoint(ALTERNATIVES) else ():
            members = list(_members(part, keyword))
            if any(not member.node.keys().isdisjoint(_TELLING) for member in members):
                return members
    return []


def _properties(node: Node) -> Node:
    return as_node(node.get("properties")) or {}


def _all_properties(parts: list[Part]) -> dict[str, list[_Place]]:
    found: dict[str, list[_Place]] = {}
    for part in parts:
        for key, value in _properties(part.node).items():
            found.setdefault(key, []).append((part, as_node(value) or {}))
    return found


def _texts(value: object) -> list[str]:
    return [entry for entry in cast("list[Any]", value) if isinstance(entry, str)] if isinstance(value, list) else []


def _kinds(parts: list[Part]) -> list[str]:
    """The kinds of value a schema takes; empty for any."""
    for part in parts:
        kinds = part.node.get("type")
        listed = [kinds] if isinstance(kinds, str) else _texts(kinds)
        if listed:
            return list(dict.fromkeys(listed)) if TYPES.issuperset(listed) else []
    for part in parts:
        if "properties" in part.node or "additionalProperties" in part.node:
            return ["object"]
        if "items" in part.node or "prefixItems" in part.node:
            return ["array"]
    return []


def _options(node: Node) -> list[Any] | None:
    """The only values a schema takes, where it lists them and each is a scalar."""
    options = [node["const"]] if "const" in node else node.get("enum")
    if not isinstance(options, list):
        return None
    listed = cast("list[Any]", options)
    return listed if all(value is None or isinstance(value, str | int | float) for value in listed) else None


def _literal(options: list[Any]) -> Any:  # noqa: ANN401 - a type
    kinds: dict[Any, None] = dict.fromkeys(map(cast("Any", type), options))
    if not options or len(options) > _MOST_OPTIONS or float in kinds:
        return Union[tuple(kinds)] if kinds else Any  # noqa: UP007 - the kinds are values
    return Literal[tuple(options)]
