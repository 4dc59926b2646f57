"""What a program of a run says on its standard output: events, a result, or just text.

A line that is a JSON object with a "type" is an event; the last one of type "result" is the result. Everything else is
text, which is the result when no line is one. Pure; ``command`` feeds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from outfitter.runner.ports import Report
from outfitter.runner.texts import MOST_RESULT, event_type, hide, read_text, result_value

MOST_LINE = 16 * 1024 * 1024
"""Bytes of a line that is read as JSON; a longer one is text."""
_NOTHING = object()


@dataclass(slots=True)
class Hearing:
    """Takes the output of one program piece by piece."""

    report: Report
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """What is masked wherever it stands, the longest first."""
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
        text = read_text(bytes(self._text)).strip()
        more = f"… [{self._missing} more bytes]" if self._missing else ""
        return result_value(hide(text, self.hidden) + more)

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
        said = _object_of(line, self.hidden)
        kind = event_type(said.get("type")) if said is not None else None
        if said is None or kind is None:
            return False
        if kind == "result":
            self._result = said.get("result")
        else:
            inner = said.get("data")
            rest = {name: value for name, value in said.items() if name not in {"type", "at"}}
            self.report(kind, cast("dict[str, Any]", inner) if isinstance(inner, dict) and len(rest) == 1 else rest)
        return True


def _object_of(line: bytes, hidden: tuple[str, ...]) -> dict[str, Any] | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        text = line.decode("utf-8", "backslashreplace") if not hidden else hide(line.decode("utf-8", "replace"), hidden)
        found: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
