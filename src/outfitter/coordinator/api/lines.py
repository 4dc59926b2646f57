"""On which lines of a request's body the faults are: every place looked up in one pass.

The body was read before, so it is JSON; this only counts. A refusal can name many places of a long body, and one pass
for each of them would keep everybody else waiting. ``formats.line_of`` finds one place in any syntax.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

Trail: TypeAlias = tuple[str | int, ...]
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},]|[^\s\[\]{},:"]++', re.DOTALL)


def lines_of(body: bytes, trails: Collection[Trail]) -> Mapping[Trail, int]:
    """The line, from 1, of the key or list element at each of these places; one that is not there is left out."""
    if not body or not trails:
        return {}
    text = body.decode("utf-8", "replace")
    places = _places(text, frozenset(trails))
    lines: dict[Trail, int] = {}
    line, counted = 1, 0
    for trail, at in sorted(places.items(), key=lambda place: place[1]):
        line, counted = line + text.count("\n", counted, at), at
        lines[trail] = line
    return lines


def _places(text: str, wanted: frozenset[Trail]) -> dict[Trail, int]:
    """Where each wanted key or element begins."""
    lasts = {trail[-1] for trail in wanted if trail}
    found: dict[Trail, int] = {}
    steps: list[str | int | None] = []  # per open object or list: the key or number of its present value
    for token in _TOKEN.finditer(text):
        written, step = token[0], steps[-1] if steps else None
        if written in {"]", "}"}:
            steps.pop()
        elif written == ",":
            steps[-1] = step + 1 if isinstance(step, int) else None
        elif steps and step is None:
            steps[-1] = json.loads(written, strict=False)
            _note(steps, token.start(), lasts, wanted, found)
        else:
            if isinstance(step, int):
                _note(steps, token.start(), lasts, wanted, found)
            if written in {"[", "{"}:
                steps.append(0 if written == "[" else None)
        if len(found) == len(wanted):
            break
    return found


def _note(
    steps: list[str | int | None], at: int, lasts: set[str | int], wanted: frozenset[Trail], found: dict[Trail, int]
) -> None:
    if steps[-1] in lasts:
        trail: Trail = tuple(step for step in steps if step is not None)
        if trail in wanted:
            found.setdefault(trail, at)
