"""What the forms of entries have in common: values put into a document and read, and what is wrong said at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from outfitter.errors import Invalid, Refused

Document: TypeAlias = dict[str, Any]


def part_of(document: Mapping[str, Any], name: str) -> Document:
    """An object in a document; an empty one when it is not there."""
    found: Document | None = document.get(name)
    return found or {}


def put(made: Document, name: str, value: object) -> None:
    """Set a field; what is empty is left out."""
    if value in ("", None, [], {}):
        made.pop(name, None)
    else:
        made[name] = value


def shown(value: object) -> str:
    """A value as it stands in a field: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def read_value(name: str, kind: str, text: str, problems: list[Invalid]) -> Any:  # noqa: ANN401 - JSON
    """The value that a text of a form means for a header or a variable of this type."""
    if text.lstrip().startswith('{"$secret"') or kind == "json":
        return read_json(f"'{name}'", text, problems)
    return text


def read_json(what: str, text: str, problems: list[Invalid]) -> Any:  # noqa: ANN401 - JSON
    """The JSON of a field; what is none stays the text that was typed, and is a problem."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append(Invalid(f"{what}: this is no JSON ({error})"))
        return text


def read_number(what: str, text: str, unit: str, problems: list[Invalid]) -> float | str:
    """The number of a field; nothing for an empty one. What is none stays what was typed, and is a problem."""
    if not text.strip():
        return ""
    try:
        value = float(text)
    except ValueError:
        problems.append(Invalid(f"{what}: '{text[:20]}' is no number of {unit}"))
        return text
    return int(value) if value.is_integer() else value


def refuse(problems: Sequence[Invalid]) -> None:
    """Raise what is wrong with a form: the problem, or all of them together."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise Refused(f"{len(problems)} problems", problems)
