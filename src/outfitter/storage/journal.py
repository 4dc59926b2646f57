"""The call journal: lines that are safe against the death of the process before anyone hears the answer.

Each process writes segments of its own, one ``pwrite`` for the lines of a moment. The disk has promised the room before
a call begins, so a full disk stops calls before they happen, not records after. What follows the last newline of a
segment is room that was reserved, or a line that was never finished: nobody got its answer. ``audit`` takes the lines
from here.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from outfitter.errors import StorageUnavailable

_log = logging.getLogger(__name__)
_SEGMENT_BYTES = 16 * 1024 * 1024
_RESERVE_BYTES = 1024 * 1024
_MARGIN_BYTES = 256 * 1024
_CHUNK_BYTES = 512 * 1024
_SUFFIX = ".calls"


@dataclass(slots=True)
class Journal:
    """The journal of one process. ``make_room`` before a call, ``append`` after it."""

    folder: Path
    segment_bytes: int = _SEGMENT_BYTES
    _file: int = -1
    _end: int = 0
    _reserved: int = 0

    def make_room(self) -> None:
        """Have the disk promise room for the calls under way; StorageUnavailable when it does not."""
        if self._reserved - self._end >= _MARGIN_BYTES and self._file >= 0:
            return
        try:
            self._begin_segment() if self._file < 0 or self._end >= self.segment_bytes else self._reserve()
        except OSError as error:
            told = f"calls cannot be recorded: {error.strerror}"
            raise StorageUnavailable(told, where=str(self.folder), hint="free some space on the disk") from None

    def append(self, line: bytes) -> None:
        """Write one whole line, newline included; StorageUnavailable, and no half line, when it cannot be."""
        if not self.append_each([line]):
            told = "the call was not recorded: the disk cannot be written to"
            raise StorageUnavailable(told, where=str(self.folder))

    def append_each(self, lines: Sequence[bytes]) -> int:
        """Write whole lines with one write; how many of them stand there now, the first ones and no half one."""
        data = lines[0] if len(lines) == 1 else b"".join(lines)
        try:
            if self._file < 0:
                self.make_room()
            while self._end + len(data) > self._reserved:
                self._reserve()
            written = os.pwrite(self._file, data, self._end)
        except (OSError, StorageUnavailable) as error:
            _log.error("calls are not recorded: %s", error)
            return 0
        if written == len(data):
            self._end += written
            return len(lines)
        whole = data.count(b"\n", 0, written)
        self._end += data.rfind(b"\n", 0, written) + 1
        return whole

    def close(self) -> None:
        """Give back what was reserved; others may take the rest."""
        if self._file >= 0:
            file, self._file = self._file, -1
            _finish(file, self._end)

    def _begin_segment(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Journals of several machines can meet in one database, so a name is like no other anywhere.
        path = self.folder / f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(8).hex()}{_SUFFIX}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            claim(file)
            _promise(file, 0, _RESERVE_BYTES)
        except OSError:
            os.close(file)
            path.unlink()
            raise
        old, end = self._file, self._end
        self._file, self._end, self._reserved = file, 0, _RESERVE_BYTES
        if old >= 0:
            _finish(old, end)

    def _reserve(self) -> None:
        _promise(self._file, self._reserved, _RESERVE_BYTES)
        self._reserved += _RESERVE_BYTES


def _promise(file: int, start: int, length: int) -> None:
    """Have the disk set room aside; NUL bytes until something is written there."""
    if sys.platform == "linux":
        os.posix_fallocate(file, start, length)
    elif os.pwrite(file, bytes(length), start) != length:
        raise OSError(28, "No space left on device")


def _finish(file: int, end: int) -> None:
    try:
        os.ftruncate(file, end)
    finally:
        os.close(file)


def claim(file: int) -> bool:
    """Take the lock of an open file, until it is closed; False when another holds it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def segments(folder: Path) -> tuple[Path, ...]:
    """Every segment there is, of every process, oldest first."""
    return tuple(sorted(folder.glob(f"*{_SUFFIX}")))


def read_lines(path: Path, place: int) -> Iterator[bytes]:
    """Whole lines from ``place`` on, in pieces, each ending with a newline.

    The first NUL is the end: what stands behind it was written while this was read, and is taken the next time.
    """
    with path.open("rb") as file:
        file.seek(place)
        rest = b""
        while chunk := file.read(_CHUNK_BYTES):
            written, room, _ = chunk.partition(b"\0")
            end = written.rfind(b"\n") + 1
            if end:
                yield rest + written[:end]
                rest = written[end:]
            else:
                rest += written
            if room:
                return


def remove_if_done(path: Path, place: int) -> bool:
    """Remove a segment that is read to its end and that nobody writes any more."""
    file = os.open(path, os.O_RDWR)
    try:
        if not claim(file) or next(read_lines(path, place), None) is not None:
            return False
    finally:
        os.close(file)
    path.unlink()
    return True
