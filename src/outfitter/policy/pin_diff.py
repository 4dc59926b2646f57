"""What changed in a definition, for a person: both sides line by line, with everything hidden made visible."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, cast

from outfitter.catalog import JsonValue
from outfitter.policy.hidden_text import reveal_hidden
from outfitter.policy.pins import SEEN

_WIDTH = 100
_MOST_LINES = 1500


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row of a comparison: a line of what was, beside the line of what is; None where a side has none."""

    part: str
    """The part of the definition that it belongs to, such as ``description``."""
    mark: Literal["same", "changed", "added", "removed"]
    before: str | None
    after: str | None


def compare(before: JsonValue, after: JsonValue) -> tuple[DiffRow, ...]:
    """Both definitions side by side, part by part; a text is one part without a name."""
    rows: list[DiffRow] = []
    for part in _parts(before, after):
        rows += _rows(part, _lines(_part_of(before, part)), _lines(_part_of(after, part)))
    return tuple(rows)


def _parts(*sides: JsonValue) -> list[str]:
    named = [cast("dict[str, JsonValue]", side) for side in sides if isinstance(side, dict)]
    if not named:
        return [""]
    return [part for part in SEEN if any(part in side for side in named)]


def _part_of(side: JsonValue, part: str) -> JsonValue:
    return side.get(part) if isinstance(side, dict) else side


def _lines(value: JsonValue) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, str):
        return [reveal_hidden(line) for line in json.dumps(value, indent=2, ensure_ascii=False).splitlines()]
    lines: list[str] = []
    for line in reveal_hidden(value).split("\n"):
        lines += textwrap.wrap(line, _WIDTH, drop_whitespace=False, expand_tabs=False, replace_whitespace=False) or [""]
    return lines


def _rows(part: str, before: Sequence[str], after: Sequence[str]) -> Iterator[DiffRow]:
    if len(before) > _MOST_LINES or len(after) > _MOST_LINES:
        # Comparing takes longer than their number: somebody could write a definition that nobody ever sees.
        mark = "same" if before == after else "changed"
        yield from _beside(part, mark, before[:_MOST_LINES], after[:_MOST_LINES])
        return
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        yield from _beside(part, "same" if tag == "equal" else "changed", before[a:b], after[c:d])


def _beside(
    part: str, mark: Literal["same", "changed"], before: Sequence[str], after: Sequence[str]
) -> Iterator[DiffRow]:
    for place in range(max(len(before), len(after))):
        left = before[place] if place < len(before) else None
        right = after[place] if place < len(after) else None
        alone = "added" if left is None else "removed" if right is None else mark
        yield DiffRow(part, alone, left, right)
