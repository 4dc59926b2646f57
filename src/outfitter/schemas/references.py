"""What a ``$ref`` points at, inside its own document only; whatever points outside is refused and never fetched.

``#``, ``#/a/pointer``, ``#anchor`` and the ``$id`` of a schema in the same document are understood.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote

from outfitter.basics import quote
from outfitter.errors import InvalidSchema
from outfitter.schemas.keywords import DIALECTAL, INNER, NAMES, Node, as_node, subschemas


@dataclass(frozen=True, slots=True)
class Library:
    """The schemas of one document that can be pointed at, and for each schema the document it belongs to."""

    root: Node
    ids: dict[str, Node] = field(default_factory=dict[str, Node])
    anchors: dict[tuple[int, str], list[Node]] = field(default_factory=dict[tuple[int, str], list[Node]])
    bases: dict[int, Node] = field(default_factory=dict[int, Node])
    nodes: list[Node] = field(default_factory=list[Node])
    """Every schema that is more than a leaf."""
    leaves: list[Node] = field(default_factory=list[Node])
    """Every leaf with a keyword that must be looked at: a pattern, or one that tells the dialect."""

    @classmethod
    def of(cls, root: Node) -> Library:
        """The library of a document."""
        library = cls(root)
        library.add(root, root)
        return library

    def add(self, node: Node, base: Node) -> None:
        """Take in a schema and everything in it; one that is known is not taken in again."""
        waiting = [(node, base)]
        while waiting:
            found, owner = waiting.pop()
            if found.keys().isdisjoint(INNER) or id(found) in self.bases:
                continue
            if not found.keys().isdisjoint(NAMES):
                owner = self._name(found, owner)
            self.bases[id(found)] = owner
            self.nodes.append(found)
            for inner in subschemas(found):
                if not inner.keys().isdisjoint(INNER):
                    waiting.append((inner, owner))
                elif not inner.keys().isdisjoint(DIALECTAL):
                    self.leaves.append(inner)

    def _name(self, node: Node, base: Node) -> Node:
        own = node.get("$id")
        if isinstance(own, str) and not own.startswith("#"):
            base = node
            self.ids[own.rstrip("#")] = node
        elif isinstance(own, str):
            self.anchors.setdefault((id(base), own[1:]), []).append(node)
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = node.get(keyword)
            if isinstance(anchor, str):
                self.anchors.setdefault((id(base), anchor), []).append(node)
        return base

    def resolve(self, reference: object, node: Node) -> object:
        """What a reference in ``node`` points at; InvalidSchema when that is outside the document or nothing."""
        if not isinstance(reference, str):
            raise InvalidSchema("a $ref is not a text")
        start, _, fragment = reference.partition("#")
        base = self.bases.get(id(node), self.root) if not start else self.ids.get(start)
        if base is None:
            raise InvalidSchema(f"$ref {quote(reference)} points outside the schema; nothing is fetched")
        if fragment and not fragment.startswith("/"):
            return self._anchored(base, fragment)
        found = at_pointer(base, fragment)
        if not isinstance(found, dict | bool):
            raise InvalidSchema(f"$ref {quote(reference)} points at nothing")
        inner = as_node(cast("Any", found))
        if inner is not None:
            self.add(inner, base)
            if id(inner) not in self.bases and not inner.keys().isdisjoint(DIALECTAL):
                self.leaves.append(inner)
        return cast("object", found)

    def _anchored(self, base: Node, anchor: str) -> Node:
        named = self.anchors.get((id(base), anchor), [])
        if len(named) != 1:
            raise InvalidSchema(f"$ref '#{anchor}' points at {len(named) or 'no'} schemas")
        return named[0]


def at_pointer(root: object, pointer: str) -> object:
    """What a JSON pointer as a URI fragment points at; None when there is nothing."""
    found: Any = root
    for part in pointer.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = cast("Node", found).get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(key)]
        else:
            return None
    return found
