"""Bytes in, whole lines out, with a limit on how long one may grow. No I/O."""

from __future__ import annotations


class LineTooLong(Exception):
    """A line has more bytes than allowed."""


class LineSplitter:
    """Cuts a stream of pieces into lines; what is not complete yet is kept."""

    __slots__ = ("_limit", "_parts", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def begun(self) -> bytes:
        """The beginning of the line that is not complete yet, or too long."""
        return b"".join(self._parts)

    def forget(self) -> None:
        """Drop what was kept."""
        self._parts = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete with this piece, without their line breaks; LineTooLong beyond the limit."""
        lines = data.split(b"\n")
        if len(data) > self._limit:
            self._refuse_long(lines)
        rest = lines.pop()
        if lines and self._parts:
            self._keep(lines[0])
            lines[0] = self.begun
            self.forget()
        if rest:
            self._keep(rest)
        return lines

    def _refuse_long(self, lines: list[bytes]) -> None:
        for line in lines:
            if len(line) > self._limit:
                self.forget()
                self._keep(line)

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            raise LineTooLong
