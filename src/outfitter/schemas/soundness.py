"""Is this value JSON at all, and shallow enough to be judged? What no JSON text can say must not reach the wire.

NaN and infinities are the usual case: ``json`` reads ``1e400`` as infinity and would write it as something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from outfitter.schemas.shape import Fault

MOST_DEPTH = 100
_JSON_WORDS: dict[Any, str] = {
    dict: "object",
    list: "array",
    tuple: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
}


def pointer_of(path: tuple[str | int, ...] | list[str | int]) -> str:
    """The JSON pointer of a path."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def word_for(value: object) -> str:
    """The JSON word for the kind of a value."""
    if value is None:
        return "null"
    return _JSON_WORDS.get(type(value), "number" if isinstance(value, float) else type(value).__name__)


def measure(value: object) -> tuple[int, int, tuple[Fault, ...]]:
    """How many values there are, how deep they lie, and what of them is no JSON."""
    nodes, depth, faults = 1, 0, list[Fault]()
    level: list[_Place] = []
    _look(None, value, level, faults)
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            return nodes, depth, (*faults, Fault("", f"is nested more than {MOST_DEPTH} levels deep"))
        following: list[_Place] = []
        for place in level:
            inner = place[1]
            nodes += len(inner)
            entries = cast("Iterable[tuple[Any, Any]]", inner.items() if type(inner) is dict else enumerate(inner))
            for key, part in entries:
                _look((place, key), part, following, faults)
        level = [place for place in following if place[1]]
    return nodes, depth, tuple(faults)


_Place: TypeAlias = "tuple[Any, Any]"
"""A list or object, after where it is: None, or (the place above, the key). A path is only made when it is needed."""


def _look(where: Any, value: Any, following: list[_Place], faults: list[Fault]) -> None:  # noqa: ANN401 - any JSON
    """Note what is wrong with one value, if anything; what has parts joins the following level."""
    kind: Any = cast("Any", type)(value)
    if kind is str:
        if value.isascii() or _is_text(value):
            return
        message = "is not a text that UTF-8 can carry"
    elif value is None or kind is bool or kind is int:
        return
    elif kind is float:
        if math.isfinite(value):
            return
        message = f"is {value}, which JSON cannot say"
    elif kind is list or kind is tuple or kind is dict:
        following.append((where, value))
        if kind is not dict or all(isinstance(key, str) and (key.isascii() or _is_text(key)) for key in value):
            return
        message = _KEY
    else:
        message = f"is of the Python type {kind.__name__}, which is no JSON"
    faults.append(Fault(pointer_of(_path(where)), message))


_KEY = "has a key that is not a text that UTF-8 can carry"


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _path(where: Any) -> tuple[str | int, ...]:  # noqa: ANN401 - nested pairs
    keys: list[str | int] = []
    while where is not None:
        (where, _), key = where
        keys.append(key)
    return tuple(reversed(keys))


def plain(value: object) -> Any:  # noqa: ANN401 - any JSON
    """The value with every mapping as a dict: what a caller may hand in for an object."""
    if isinstance(value, Mapping) and type(cast("object", value)) is not dict:
        return {key: plain(entry) for key, entry in cast("Mapping[Any, Any]", value).items()}
    return cast("Any", value)
