"""The heads of HTTP messages that were read before: the same bytes mean the same again, and are not parsed again.

A head is known by all its bytes but the digits of its length. Only a message that came whole, in one piece, with one
length and nothing else about its framing, is kept here; httptools has read it. What is said about it is the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
_END = b"\r\n\r\n"
_LENGTH = b"ength: "
_MOST_DIGITS = 8


@dataclass(slots=True, eq=False)
class Heads(Generic[T]):
    """What is known of heads, by their bytes; all is forgotten when there are too many."""

    most: int
    _known: dict[bytes, T] = field(default_factory=dict[bytes, T])

    def find(self, data: bytes) -> tuple[T, bytes] | None:
        """What is known of the head of a message, and its body; None unless the message is whole and its head known."""
        start = data.find(_LENGTH) + 7
        stop = data.find(b"\r", start)
        end = data.find(_END, stop)
        known = self._known.get(data[:start] + data[stop:end])
        if known is None:
            return None
        digits, body = data[start:stop], data[end + 4 :]
        if not digits.isdigit() or len(digits) > _MOST_DIGITS or len(body) != int(digits):
            return None
        return known, body

    def keep(self, data: bytes, length: int, what: T) -> None:
        """Remember the head of a message that was parsed and is whole in ``data``, if nothing about it is unusual."""
        end = data.find(_END)
        head = data[:end]
        lowered = head.lower()
        place = head.find(_LENGTH)
        is_one = head.count(_LENGTH) == 1 and lowered.count(b"ontent-length") == 1
        is_named = lowered[:place].endswith(b"\ncontent-l")
        if not is_one or not is_named or b"transfer-encoding" in lowered or len(data) != end + 4 + length:
            return
        if len(self._known) >= self.most:
            self._known.clear()
        stop = data.find(b"\r", place)
        self._known[data[: place + 7] + data[stop:end]] = what
