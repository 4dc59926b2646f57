"""Schemas that want to hurt: too large, too deep, too many ways, references to elsewhere, endless patterns."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = Any


def nested(levels: int) -> Json:
    """Objects in objects."""
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def nested_value(levels: int, leaf: Json = 1) -> Json:
    """A value with so many objects in each other."""
    value = leaf
    for _ in range(levels):
        value = {"a": value}
    return value


def doubling(levels: int, *, through: str) -> Json:
    """Each definition refers twice to the next: 2 ** levels ways, in place or one level deeper each time."""
    definitions: Json = {f"d{levels}": {"type": "integer"}}
    for level in range(levels):
        target = {"$ref": f"#/$defs/d{level + 1}"}
        deeper = {"type": "object", "properties": {"a": target}, "required": ["zz"]}
        definitions[f"d{level}"] = {"anyOf": [target, target] if through == "place" else [deeper, dict(deeper)]}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def chained(length: int) -> Json:
    """A reference to a reference to a reference."""
    definitions: Json = {f"d{level}": {"$ref": f"#/$defs/d{level + 1}"} for level in range(length)}
    definitions[f"d{length}"] = {"type": "string"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def in_x(schema: Json) -> Json:
    """An object with this property."""
    return {"type": "object", "properties": {"x": schema}}


REFUSED: dict[str, Json] = {
    "remote reference": in_x({"$ref": "https://canary.example/schema.json"}),
    "remote reference in a definition": {"type": "object", "$defs": {"a": {"$ref": "http://canary.example/#/a"}}},
    "file": in_x({"$ref": "file:///etc/passwd"}),
    "relative file": in_x({"$ref": "other.json#/a"}),
    "reference to nothing": in_x({"$ref": "#/$defs/none"}),
    "reference to data": in_x({"$ref": "#/properties/x/title", "title": "t"}),
    "reference that is no text": in_x({"$ref": 5}),
    "dynamic reference with two targets": {
        "type": "object",
        "$defs": {"a": {"$dynamicAnchor": "n"}, "b": {"$dynamicAnchor": "n", "$dynamicRef": "#n"}},
    },
    "10,000 properties": {"type": "object", "properties": {f"p{n}": {} for n in range(10_000)}},
    "2,001 properties": in_x({"properties": {f"p{n}": True for n in range(2_001)}}),
    "depth 500": nested(500),
    "depth 50,000": nested(50_000),
    "100,000 enum values": in_x({"enum": list(range(100_000))}),
    "huge text": in_x({"description": "x" * 5_000_000}),
    "doubling in place": doubling(40, through="place"),
    "doubling at each level": doubling(40, through="levels"),
    "chain of references": chained(5_000),
    "itself": {"$ref": "#"},
    "itself through allOf": in_x({"allOf": [{"$ref": "#/properties/x"}]}),
    "each other": in_x({"$ref": "#/$defs/a"}) | {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "many large patterns": {"properties": {f"p{n}": {"pattern": rf"(\p{{L}}{{9{n}}}){{99}}"} for n in range(50)}},
    "not JSON": in_x({"default": {1, 2}}),
    "not a number": in_x({"maximum": float("nan")}),
    "key that is no text": {"type": "object", 5: {}},
    "root array": {"type": "array", "items": {"type": "string"}},
    "root null": {"type": "null"},
    "root string or null": {"type": ["string", "null"]},
    "root constant": {"const": 5},
    "root reference to an array": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array"}}},
    "root alternatives without an object": {"anyOf": [{"type": "string"}, {"type": "array"}]},
    "true": True,
    "false": False,
    "missing": None,
    "list": [],
    "text": "object",
}

_CATASTROPHES = [r"^(a+)+$", r"^(a|a)*$", r"^(a|aa)+$", r"(a*)*b", r"^(?=(a+)+$)(a|aa)+$", r"(a|a)*?(?!b)(a|aa)+$"]
_TREE: Json = {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}, "required": ["zz"]}
_MANY: Json = {"anyOf": [{"const": n} for n in range(2_000)]}
_MANY_OBJECTS: Json = {"properties": {f"q{n}": {"properties": {"a": True}} for n in range(50)}}

SURVIVED: dict[str, tuple[Json, Json]] = {
    **{f"pattern {text}": (in_x({"pattern": text}), {"x": "a" * 5_000 + "!"}) for text in _CATASTROPHES},
    "back reference": (in_x({"pattern": r"(x+x+)+\1y"}), {"x": "x" * 5_000}),
    "tree with alternatives": (
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"anyOf": [_TREE, dict(_TREE)]}}},
        {"x": nested_value(60)},
    ),
    "tree with alternatives, not so deep": (
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"anyOf": [_TREE, dict(_TREE)]}}},
        {"x": nested_value(14)},
    ),
    "1,900 properties": (in_x({"properties": {f"p{n}": {"type": "string"} for n in range(1_900)}}), {"x": {"p1": 1}}),
    "11,000 enum values": (in_x({"enum": list(range(11_000))}), {"x": -1}),
    "2,500 objects": ({"properties": {f"p{n}": _MANY_OBJECTS for n in range(50)}, "required": ["q"]}, {}),
    "one reference from many places": (
        {"properties": {f"p{n}": {"$ref": "#/$defs/d", "minLength": 1} for n in range(1_000)}, "$defs": {"d": _MANY}},
        {"p1": "x"},
    ),
    "many keys with one name": (
        {"properties": {chr(0x2600 + n): {"type": "null"} for n in range(1_900)}},
        {"\u2601": 1},
    ),
    "many alternatives": (in_x({"oneOf": [{"const": n} for n in range(4_000)]}), {"x": -1}),
    "doubling at some levels": (doubling(12, through="levels"), {"x": nested_value(12)}),
    "large pattern": (in_x({"type": "string", "pattern": r"(\w{1000}){1000}"}), {"x": 5}),
}
"""Schemas that are taken, each with a value that does not fit or cannot be judged."""
