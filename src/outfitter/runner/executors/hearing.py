"""What a program of a run says on its standard output: events, a result, or just text.

A line that is a JSON object with a "type" is an event; the last one of type "result" is the result. Everything else is
text, which is the result when no line is one. Pure; ``command`` feeds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from outfitter.runner.ports import Report
from outfitter.runner.texts import MOST_RESULT, event_type, hide, hide_within, result_value

MOST_LINE = MOST_RESULT + 64 * 1024
"""Bytes of a line that is read as JSON: a result of full length and what stands around it. A longer one is text."""
_SHORTEST_PART = 4
_NOTHING = object()


@dataclass(slots=True)
class Hearing:
    """Takes the output of one program piece by piece."""

    report: Report
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """What is masked in every text once it is decoded, the longest first."""
    _line: bytearray = field(default_factory=bytearray)
    _is_long: bool = False
    """Whether the line that has begun is too long to be read as JSON."""
    _text: bytearray = field(default_factory=bytearray)
    _missing: int = 0
    _result: object = _NOTHING

    def hear(self, piece: bytes) -> None:
        """Take a piece."""
        *lines, begun = piece.split(b"\n")
        for line in lines:
            self._grow(line)
            self._end_line()
        self._grow(begun)

    def result(self) -> object:
        """What came of it, once all was heard: the result that was given, or the text."""
        if self._line or self._is_long:
            self._end_line()
        if self._result is not _NOTHING:
            return result_value(self._result)
        text = hide(self._text.decode("utf-8", "backslashreplace"), self.hidden).strip()
        if not self._missing:
            return result_value(text)
        return result_value(f"{_without_part(text, self.hidden)}… [{self._missing} more bytes]")

    def _grow(self, part: bytes) -> None:
        if not self._is_long and len(self._line) + len(part) > MOST_LINE:
            self._is_long = True
            self._keep(bytes(self._line))
            self._line.clear()
        if self._is_long:
            self._keep(part)
        else:
            self._line += part

    def _end_line(self) -> None:
        line, is_long = bytes(self._line), self._is_long
        self._line.clear()
        self._is_long = False
        if is_long:
            self._keep(b"\n")
        elif line.strip() and not self._is_event(line):
            self._keep(line + b"\n")

    def _keep(self, part: bytes) -> None:
        room = max(0, MOST_RESULT - len(self._text))
        self._text += part[:room]
        self._missing += len(part[room:])

    def _is_event(self, line: bytes) -> bool:
        said = _object_of(line)
        kind = event_type(said.get("type")) if said is not None else None
        if said is None or kind is None:
            return False
        if kind == "result":
            self._result = hide_within(said.get("result"), self.hidden)
        else:
            inner = said.get("data")
            rest = {name: value for name, value in said.items() if name not in {"type", "at"}}
            data = cast("dict[str, Any]", inner) if isinstance(inner, dict) and len(rest) == 1 else rest
            self.report(event_type(hide(kind, self.hidden)) or "event", hide_within(data, self.hidden))
        return True


def _without_part(text: str, hidden: tuple[str, ...]) -> str:
    """The text without the beginning of a hidden one at its end, where it was cut off."""
    for secret in hidden:
        for length in range(len(secret) - 1, _SHORTEST_PART - 1, -1):
            if text.endswith(secret[:length]):
                return text[:-length]
    return text


def _object_of(line: bytes) -> dict[str, Any] | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found: Any = msgspec.json.decode(line.decode("utf-8", "replace"))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
