"""Reading foreign schemas and using each once, against pydantic's and FastMCP's way to the same, and its memory.

The schemas are made here, of the forms and sizes that real tools have; with ``CORPUS=DIR`` they are real ones. First
use means: the type exists and one value has been judged. Memory is what the process grows by, so that what Rust holds
counts too; the "ms" of its row are KiB.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias, Union

from benchmarks.corpus import schemas_in
from benchmarks.measure import Ratio, compare
from outfitter.schemas import read_schema

Json: TypeAlias = Any
Named: TypeAlias = tuple[str, Json]

_SCHEMAS = 500
_DEEPEST = 3
_THIRD = 1 / 3
_KIBIBYTES_PER_TOOL = 25
_WORDS = ("id", "name", "query", "owner", "repo", "limit", "page", "filter", "created-at", "status", "labels", "path")
_LIMITS = {"minLength": "min_length", "maxLength": "max_length"}
_PLAIN: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}


def make_schemas(count: int) -> list[Named]:
    """So many schemas with a name each, the same ones every time."""
    chance = random.Random(7)
    return [(f"tool_{number}", _object(chance, chance.choice((1, 2, 3, 4, 6, 9, 14)), 0)) for number in range(count)]


def _object(chance: random.Random, size: int, depth: int) -> Json:
    keys = [f"{chance.choice(_WORDS)}{number or ''}" for number in range(size)]
    properties = {key: {**_schema(chance, depth), "description": f"What {key} is, in a sentence."} for key in keys}
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(chance.sample(list(properties), len(properties) // 2)),
        "additionalProperties": False,
    }


def _schema(chance: random.Random, depth: int) -> Json:
    made: dict[str, Callable[[], Json]] = {
        "text": lambda: {"type": "string"},
        "number": lambda: {"type": "integer", "minimum": 1},
        "flag": lambda: {"type": "boolean", "default": False},
        "choice": lambda: {"type": "string", "enum": ["open", "closed", "all"]},
        "list": lambda: {"type": "array", "items": _schema(chance, depth + 1)},
        "object": lambda: _object(chance, 3, depth + 1),
        "optional": lambda: {"anyOf": [_schema(chance, depth + 1), {"type": "null"}]},
    }
    kind = chance.choices(tuple(made), (60, 12, 8, 6, 5, 5, 4))[0]
    return made[kind if depth < _DEEPEST else "text"]()


def _chosen() -> list[Named]:
    folder = os.environ.get("CORPUS")
    if folder is None:
        return make_schemas(_SCHEMAS)
    listed = [(tool, schema) for _, tool, schema, is_result in schemas_in(Path(folder)) if not is_result and schema]
    return random.Random(7).sample(listed, min(_SCHEMAS, len(listed)))


def use_ours(schemas: list[Named]) -> list[object]:
    """Every schema read, typed, and used on one value."""
    shapes = [read_schema(schema, name) for name, schema in schemas]
    for shape in shapes:
        assert shape.type is not None
        shape.faults({})
    return list[object](shapes)


def _use_pydantic(schemas: list[Named]) -> None:
    import pydantic

    for name, schema in schemas:
        model = _model(pydantic, name, schema)
        try:
            model.model_validate({})
        except pydantic.ValidationError:
            continue


def _model(pydantic: Json, name: str, schema: Json) -> Json:
    required = set(schema.get("required", ()))
    fields: dict[str, Any] = {}
    for number, (key, inner) in enumerate(schema.get("properties", {}).items()):
        default = ... if key in required else None
        limits = {ours: inner[theirs] for theirs, ours in _LIMITS.items() if theirs in inner}
        about = pydantic.Field(default, alias=key, description=inner.get("description"), **limits)
        fields[f"field_{number}"] = (_type(pydantic, f"{name}_{number}", inner), about)
    extra = "forbid" if schema.get("additionalProperties") is False else "allow"
    return pydantic.create_model(name, __config__={"extra": extra}, **fields)


def _type(pydantic: Json, name: str, schema: Json) -> Json:
    """The type as one would write it by hand, so that both sides do the same work."""
    kind = schema.get("type")
    if schema.get("enum"):
        return Literal[tuple(schema["enum"])]
    if schema.get("anyOf"):
        return Union[tuple(_type(pydantic, name, inner) for inner in schema["anyOf"])]  # noqa: UP007 - they are values
    if kind == "object" and schema.get("properties"):
        return _model(pydantic, name, schema)
    if kind == "array":
        return list[_type(pydantic, name, schema.get("items", {}))]
    return _PLAIN.get(kind, Any) if isinstance(kind, str) else Any


def _use_fastmcp(schemas: list[Named]) -> None:
    import pydantic

    convert: Json = importlib.import_module("fastmcp.utilities.json_schema_type").json_schema_to_type
    for _, schema in schemas:
        adapter: Json = pydantic.TypeAdapter(convert(schema))
        try:
            adapter.validate_python({})
        except pydantic.ValidationError:
            continue


def measure() -> Iterator[Ratio]:
    """Our time against both others, and our memory against the limit."""
    schemas = _chosen()
    for others, name in ((_use_pydantic, "pydantic's create_model"), (_use_fastmcp, "FastMCP's json_schema_to_type")):
        use = others
        ours, theirs = compare(lambda: use_ours(schemas), lambda: use(schemas), rounds=5)  # noqa: B023 - called at once
        yield Ratio(f"read and first use {len(schemas)} schemas", ours, theirs, name, _THIRD)
    grown = float(subprocess.check_output([sys.executable, "-m", "benchmarks.bench_schemas"], text=True))
    yield Ratio("memory per tool after first use, in KiB", grown / 1e3, _KIBIBYTES_PER_TOOL / 1e3, "the limit", 1)


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


def _grown_per_tool() -> float:
    """Kibibytes that the process grows by for each schema that is read and used once."""
    texts = [(name, json.dumps(schema)) for name, schema in _chosen()]
    use_ours([("warm_up", {"type": "object"})])
    gc.collect()
    before = _resident()
    kept = [use_ours([(name, json.loads(text))]) for name, text in texts]
    gc.collect()
    return (_resident() - before) / len(kept)


if __name__ == "__main__":
    print(_grown_per_tool())
