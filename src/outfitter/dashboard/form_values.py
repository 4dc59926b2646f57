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


def read_value(name: str, kind: str, text: str, problems: list[Invalid]) -> Any:  # noqa: ANN401 - JSON
    """The value that a text of a form means for a header of this type."""
    if text.lstrip().startswith('{"$secret"') or kind == "json":
        try:
            return json.loads(text)
        except ValueError as error:
            problems.append(Invalid(f"header '{name}': this is no JSON ({error})"))
    return text


def refuse(problems: Sequence[Invalid]) -> None:
    """Raise what is wrong with a form: the problem, or all of them together."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise Refused(f"{len(problems)} problems", problems)
