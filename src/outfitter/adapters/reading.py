"""Reading what a provider sent: what has not the form that was expected counts as not there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from outfitter.errors import Unavailable


def items(value: object) -> list[dict[str, Any]]:
    """The objects of a list."""
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", item) for item in cast("list[object]", value) if isinstance(item, dict)]


def text(value: object) -> str:
    """The value if it is a text."""
    return value if isinstance(value, str) else ""


def count(value: object, *path: str) -> int:
    """The number at this path of an object; 0 when there is none."""
    for key in path:
        value = cast("Mapping[str, object]", value).get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) else 0


def read_answer(body: bytes, where: str) -> dict[str, Any]:
    """The body of an answer; Unavailable when it is no JSON object."""
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise Unavailable("the model provider's answer is no JSON object", where=where)
    return cast("dict[str, Any]", read)


def read_arguments(written: object) -> dict[str, Any] | str:
    """The arguments of a call as the model wrote them: an object, or the text that is none."""
    if isinstance(written, dict):
        return cast("dict[str, Any]", written)
    if not isinstance(written, str) or not written.strip():
        return {}
    try:
        read = json.loads(written)
    except (ValueError, RecursionError):
        return written
    return cast("dict[str, Any]", read) if isinstance(read, dict) else written
