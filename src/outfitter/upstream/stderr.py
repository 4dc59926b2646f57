"""What a program said on stderr last, and how its words may stand in an error.

A program's output is foreign text: it is cut, control characters are escaped, and the values that it was given in
secret are taken out before anything else is done with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from outfitter.basics import MASK

_LINES = 6
_CHARACTERS = 1_000
_LOOKED_AT = 64 * 1024


class StderrRing:
    """The last bytes of a stream; older ones are forgotten."""

    __slots__ = ("_kept", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = b""

    def append(self, data: bytes) -> None:
        """Keep these bytes, and of the older ones what still fits."""
        self._kept = (self._kept + data)[-self._limit :] if len(data) < self._limit else data[-self._limit :]

    def last_words(self, hidden: Iterable[str]) -> str:
        """The last lines as they may be shown; empty when nothing was said."""
        text = hide(self._kept.decode("utf-8", "replace"), hidden)
        lines = [line.strip() for line in text.splitlines() if line.strip()][-_LINES:]
        return escape(" | ".join(lines)[-_CHARACTERS:])


def hide(text: str, hidden: Iterable[str]) -> str:
    """The text with each hidden one masked; give the longest first."""
    for secret in hidden:
        text = text.replace(secret, MASK)
    return text


def escape(text: str) -> str:
    """The text with everything that is not printable written as an escape."""
    return "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in text)


def quote_line(line: bytes, hidden: Iterable[str], length: int = 200) -> str:
    """The beginning of a line as it may be shown."""
    text = hide(line[:_LOOKED_AT].decode("utf-8", "backslashreplace"), hidden)
    return escape(text[:length])
