"""May this schema be used at all? Its size, its references and the work it asks for, before anything is compiled.

Work is counted, not timed: how often one place of a value can be judged. Alternatives inside alternatives multiply, so
a small text can ask for endless work; such a schema is refused here. For a schema that contains itself the work depends
on the depth of the value, so ``work_at`` is asked again for each value.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from outfitter.errors import InvalidSchema
from outfitter.schemas.keywords import (
    CHILD_ONES,
    DIALECTAL,
    IN_PLACE_LISTS,
    IN_PLACE_MAPS,
    IN_PLACE_ONES,
    REFERENCES,
    Node,
    as_node,
    nodes_in,
    nodes_under,
)
from outfitter.schemas.patterns import weight_of
from outfitter.schemas.references import Library

MOST_NODES = 12_000
MOST_DEPTH = 100
MOST_PROPERTIES = 2_000
MOST_STEPS = 200
MOST_IN_PLACE = 5_000
MOST_WORK = 1_000_000
MOST_CHARACTERS = 4_000_000
MOST_PATTERN_WEIGHT = 250_000
_NEWEST = "https://json-schema.org/draft/2020-12/schema"
_DIALECTS = (
    "http://json-schema.org/draft-04",
    "http://json-schema.org/draft-06",
    "http://json-schema.org/draft-07",
    "https://json-schema.org/draft/2019-09",
    "https://json-schema.org/draft/2020-12",
    "http://json-schema.org/schema",
)
_AGAIN = frozenset((*IN_PLACE_LISTS, *IN_PLACE_ONES, *IN_PLACE_MAPS, *REFERENCES))
_FEW = 200
_PLAIN = 4
"""The work of a schema in which nothing judges a value again: each place has its own schema, or a few."""
_MULTIPLIES = "its alternatives multiply; checking a value could take endless work"


@dataclass(frozen=True, slots=True)
class Structure:
    """What was counted: JSON values, and how often one place can be judged (None when that depends on the value)."""

    nodes: int
    work: int | None
    dialect: str
    """The dialect it is written in, said or guessed."""
    is_current: bool
    """Whether a validator finds the dialect by itself: it is said, or it is the newest."""


def inspect_schema(schema: Node) -> Structure:
    """The counts of a schema; InvalidSchema when it is too large, points outside, or asks for too much work."""
    nodes = _count(schema)
    library = Library.of(schema)
    work = _work_of(library)
    leaves = _Leaves()
    for node in (*library.nodes, *library.leaves):
        leaves.look_at(node)
    leaves.check()
    dialect = leaves.dialect(schema)
    return Structure(nodes, work, dialect, is_current=schema.get("$schema", _NEWEST) == dialect)


def _work_of(library: Library) -> int | None:
    """How often one place can be judged. Without references a bound is enough: no schema is met twice on one way."""
    again = [node for node in library.nodes if not node.keys().isdisjoint(_AGAIN)]
    if not again:
        return _PLAIN
    if all(node.keys().isdisjoint(REFERENCES) for node in again):
        bound = _PLAIN * (1 + sum(len(_judging_again(node)) for node in again))
        if bound <= _FEW:
            return bound
    return Graph.of(library).work()


def _count(schema: object) -> int:
    nodes = 1
    level: list[Any] = [schema]
    for _ in range(MOST_DEPTH):
        following: list[Any] = []
        for value in level:
            entries = _entries(value)
            nodes += len(entries)
            following += [entry for entry in entries if entry.__class__ is dict or entry.__class__ is list]
        if nodes > MOST_NODES:
            raise InvalidSchema(f"it is too large (more than {MOST_NODES:,} values)")
        if not following:
            return nodes
        level = following
    raise InvalidSchema(f"it is nested more than {MOST_DEPTH} levels deep")


def _entries(value: Any) -> Collection[Any]:  # noqa: ANN401 - a dict or list
    if value.__class__ is list:
        return value
    try:
        "".join(value)
    except TypeError:
        raise InvalidSchema("a key in it is not a text") from None
    return value.values()


@dataclass(slots=True)
class _Leaves:
    """What the schemas of a document say about themselves, without the schemas in them."""

    patterns: set[str] = field(default_factory=set[str])
    is_old: bool = False
    is_very_old: bool = False

    def look_at(self, node: Node) -> None:
        """Take down one schema."""
        properties = as_node(node.get("properties")) or {}
        if len(properties) > MOST_PROPERTIES:
            raise InvalidSchema(f"an object in it has more than {MOST_PROPERTIES:,} properties")
        self.patterns.update(key for key, _ in nodes_under(node.get("patternProperties")))
        self.is_old = self.is_old or isinstance(node.get("items"), list) or "dependencies" in node
        if node.keys().isdisjoint(DIALECTAL):
            return
        if isinstance(node.get("pattern"), str):
            self.patterns.add(node["pattern"])
        if isinstance(node.get("exclusiveMinimum"), bool) or isinstance(node.get("exclusiveMaximum"), bool):
            self.is_very_old = True

    def check(self) -> None:
        """Refuse patterns that would take too long to compile."""
        if sum(map(weight_of, self.patterns)) > MOST_PATTERN_WEIGHT:
            raise InvalidSchema("its patterns are too large to compile")

    def dialect(self, schema: Node) -> str:
        """What the schema says; else the newest one, unless it is written in an older one without saying so."""
        said = schema.get("$schema")
        if isinstance(said, str) and said.startswith(_DIALECTS):
            return said
        if self.is_very_old:
            return "http://json-schema.org/draft-04/schema#"
        return "http://json-schema.org/draft-07/schema#" if self.is_old else _NEWEST


@dataclass(frozen=True, slots=True)
class Graph:
    """Which schema judges the same value again, and which one a part of it."""

    root: Node
    in_place: dict[int, list[Node]]
    children: dict[int, list[list[Node]]]
    order: list[int]
    """Every schema after those that judge the same value again."""

    @classmethod
    def of(cls, library: Library) -> Graph:
        """The graph of a document; InvalidSchema when a schema judges a value by itself without end."""
        in_place: dict[int, list[Node]] = {}
        children: dict[int, list[list[Node]]] = {}
        for node in library.nodes:  # grows while it is read: a reference may lead to a schema not seen before
            targets = (library.resolve(node[keyword], node) for keyword in REFERENCES if keyword in node)
            referred = [target for target in map(as_node, targets) if target is not None]
            in_place[id(node)] = referred + _judging_again(node)
            children[id(node)] = _judging_parts(node)
        order = _ordered(library.nodes, in_place)
        if order is None:
            raise InvalidSchema("it refers to itself without end: a $ref leads back to where it started")
        graph = cls(library.root, in_place, children, order)
        graph._check_in_place()
        return graph

    def _check_in_place(self) -> None:
        costs: dict[int, int] = {}
        for key in self.order:
            costs[key] = 1 + sum(costs.get(id(other), 1) for other in self.in_place[key])
            if costs[key] > MOST_IN_PLACE:
                raise InvalidSchema(_MULTIPLIES)

    def work(self) -> int | None:
        """How often one place of any value can be judged; None when the schema contains itself."""
        around = {key: [*again, *chain.from_iterable(self.children[key])] for key, again in self.in_place.items()}
        order = _ordered([self.root], around)
        if order is None:
            return None
        works: dict[int, int] = {}
        for key in order:
            works[key] = self._work_of(key, works, works)
            if works[key] > MOST_WORK:
                raise InvalidSchema(_MULTIPLIES)
        return works.get(id(self.root), 1)

    def work_at(self, depth: int) -> int:
        """How often one place of a value of this depth can be judged, counted no further than the limit."""
        above: dict[int, int] = {}
        for _ in range(depth + 1):
            works: dict[int, int] = {}
            for key in self.order:
                works[key] = min(self._work_of(key, works, above), MOST_WORK + 1)
            above = works
        return above.get(id(self.root), 1)

    def _work_of(self, key: int, here: dict[int, int], below: dict[int, int]) -> int:
        """1 for itself, all that judge again, and the worst of those that judge different parts."""
        again = sum(here.get(id(other), 1) for other in self.in_place[key])
        return 1 + again + sum(max(below.get(id(part), 1) for part in group) for group in self.children[key])


def _judging_again(node: Node) -> list[Node]:
    if node.keys().isdisjoint(_AGAIN):
        return []
    found = [inner for keyword in IN_PLACE_LISTS for inner in nodes_in(node.get(keyword))]
    found += [inner for keyword in IN_PLACE_ONES if (inner := as_node(node.get(keyword))) is not None]
    return found + [inner for keyword in IN_PLACE_MAPS for _, inner in nodes_under(node.get(keyword))]


def _judging_parts(node: Node) -> list[list[Node]]:
    """Groups of schemas; a part is judged by at most one of each group."""
    properties = [inner for _, inner in nodes_under(node.get("properties"))]
    members = [*nodes_in(node.get("prefixItems")), *nodes_in(node.get("items"))]
    groups = [properties, members, *([inner] for _, inner in nodes_under(node.get("patternProperties")))]
    groups += [[inner] for keyword in CHILD_ONES if (inner := as_node(node.get(keyword))) is not None]
    return [group for group in groups if group]


def _ordered(roots: list[Node], following: dict[int, list[Node]]) -> list[int] | None:
    """Every schema that is more than a leaf, after those that follow it; None when one comes back to itself."""
    levels: dict[int, int] = {}
    path: set[int] = set()
    for root in roots:
        stack = [] if id(root) in levels or id(root) not in following else [(id(root), iter(following[id(root)]))]
        while stack:
            key, waiting = stack[-1]
            path.add(key)
            inner = next((id(node) for node in waiting if id(node) in following and id(node) not in levels), None)
            if inner is None:
                stack.pop()
                path.discard(key)
                levels[key] = 1 + max((levels.get(id(other), 0) for other in following[key]), default=0)
            elif inner in path:
                return None
            else:
                stack.append((inner, iter(following[inner])))
    if max(levels.values(), default=0) > MOST_STEPS:
        raise InvalidSchema(f"its references follow each other more than {MOST_STEPS} steps")
    return list(levels)
