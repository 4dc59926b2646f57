"""How a stream of server-sent events is read: bytes in, events out, in any pieces.

Pure: no I/O. ``http`` and ``sse`` feed it what they receive. The rules are those of the HTML standard, with two
differences: the data stays bytes, because it is JSON that is checked when it is decoded, and an event has a size limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from outfitter.errors import ProtocolViolation

DEFAULT_EVENT_LIMIT = 16 * 1024 * 1024
_MARK = b"\xef\xbb\xbf"
_DIGITS = re.compile(rb"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its type, its data, and the last id the stream has named so far."""

    type: str
    data: bytes
    id: str


class EventParser:
    """The state between two pieces of a stream: the line that is not whole yet, and the event that is not."""

    def __init__(self, limit: int = DEFAULT_EVENT_LIMIT) -> None:
        """Start before the first byte; no event may be larger than the limit."""
        self._limit = limit
        self._line: list[bytes] = []
        self._line_size = 0
        self._data: list[bytes] = []
        self._size = 0
        self._type = ""
        self._id = ""
        self._is_first = True
        self._after_cr = False
        self.retry: float | None = None
        self.last_id = ""

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """The events that end in this piece, in order. Take them all before feeding the next piece."""
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        for part in piece.splitlines(keepends=True):
            if part[-1] not in b"\r\n":
                self._keep(part)
                continue
            event = self._end_line(part.rstrip(b"\r\n"))
            if event is not None:
                yield event
        self._after_cr = piece.endswith(b"\r") or (self._after_cr and not piece)

    def _keep(self, part: bytes) -> None:
        self._line.append(part)
        self._line_size += len(part)
        self._check(self._line_size)

    def _check(self, line_size: int) -> None:
        if self._size + line_size > self._limit:
            raise ProtocolViolation(f"the server sent an event of more than {self._limit} bytes")

    def _end_line(self, line: bytes) -> ServerEvent | None:
        if self._line:
            line = b"".join((*self._line, line))
            self._line.clear()
            self._line_size = 0
        self._check(len(line))
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_MARK)
        if not line:
            return self._end_event()
        if not line.startswith(b":"):
            name, _, value = line.partition(b":")
            self._take_field(name, value.removeprefix(b" "))
        return None

    def _take_field(self, name: bytes, value: bytes) -> None:
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
        elif name == b"event":
            self._type = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and _DIGITS.fullmatch(value):
            self.retry = int(value) / 1000

    def _end_event(self) -> ServerEvent | None:
        self.last_id = self._id
        event = ServerEvent(self._type or "message", b"\n".join(self._data), self._id) if self._data else None
        self._data.clear()
        self._size = 0
        self._type = ""
        return event
