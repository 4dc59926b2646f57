"""Arguments as they may be remembered: values that look like secrets, by the name they stand under, are masked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from outfitter.basics import MASK, Secret, looks_sensitive
from outfitter.catalog import JsonValue

_DEEPEST = 64


def redact(arguments: Mapping[str, object], depth: int = 0) -> dict[str, JsonValue]:
    """A copy of the arguments that may be logged, shown and stored."""
    return {
        key: _masked(value) if looks_sensitive(key) else _clean(value, depth + 1) for key, value in arguments.items()
    }


def _masked(value: object) -> JsonValue:
    """A mask for anything that says something; yes, no and nothing say nothing."""
    return value if value is None or isinstance(value, bool) else MASK


def _clean(value: object, depth: int) -> JsonValue:
    if depth > _DEEPEST or isinstance(value, Secret):
        return MASK
    if isinstance(value, Mapping):
        return redact(cast("Mapping[str, object]", value), depth)
    if isinstance(value, list | tuple):
        return [_clean(item, depth + 1) for item in cast("list[object]", value)]
    return cast("JsonValue", value)
