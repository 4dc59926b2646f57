"""How does a cassette get into its file? Line by line, each whole, for its owner alone.

The file comes into its place with its header, all at once. From then on each line is one write at its end, so a kill
costs at most the line that was being written. What is written was masked before (``masking``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from outfitter.errors import AlreadyExists, InvalidDocument, NotFound, StorageUnavailable
from outfitter.formats import Cassette, CassetteEntry, CassetteHeader, read_cassette, write_cassette_line

Existing: TypeAlias = Literal["keep", "overwrite", "append"]
"""What to do with a file that is there."""
_MODE = 0o600
_TIME = "{time}"


def now() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


class CassetteFile:
    """A cassette that is being written. It is closed by whoever made it."""

    def __init__(
        self, path: Path, server: str, *, existing: Existing = "keep", clock: Callable[[], datetime] = now
    ) -> None:
        """Refuse a file that is there, unless it may be replaced or gone on with; nothing is written yet."""
        self._begun = clock()
        self.path = Path(str(path).replace(_TIME, self._begun.strftime("%Y%m%d-%H%M%S")))
        self.server = server
        self.lines = 0
        self._descriptor: int | None = None
        if existing == "append" and self.path.exists():
            load_cassette(self.path)
            _end_last_line(self.path)
            self._descriptor = _open(self.path, 0)
        elif existing == "keep" and self.path.exists():
            hint = f"name another file, write {_TIME} into its name, or allow it with --overwrite or --append"
            raise AlreadyExists("there is a recording already, and it is kept", where=str(self.path), hint=hint)

    def write(self, entry: CassetteEntry, era: str) -> None:
        """Add one line; the first one brings the header with the era."""
        if self._descriptor is None:
            recorded = self._begun.strftime("%Y-%m-%dT%H:%M:%SZ")
            self._descriptor = self._begin(CassetteHeader(recorded, self.server, era))
        _write_all(self._descriptor, _bytes_of(entry))
        self.lines += 1

    def _begin(self, header: CassetteHeader) -> int:
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = _open(draft, os.O_CREAT | os.O_EXCL)
            _write_all(descriptor, _bytes_of(header))
            draft.replace(self.path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise _unwritable(self.path, error) from None
        return descriptor

    def close(self) -> None:
        """Nothing more is written."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def load_cassette(path: Path) -> Cassette:
    """The cassette in a file, without a last line that was cut off."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound("there is no such recording", where=str(path), hint="make one with 'outfitter record'") from None
    except OSError as error:
        raise StorageUnavailable(f"the recording cannot be read: {error.strerror}", where=str(path)) from None
    end = data.rfind(b"\n") + 1
    try:
        return read_cassette(data[:end].decode() + ("…" if data[end:] else ""), str(path))
    except UnicodeDecodeError:
        raise InvalidDocument("this is no cassette: it is not UTF-8", source=str(path)) from None


def append_entry(path: Path, entry: CassetteEntry) -> None:
    """Add one line to a cassette that is there; a line that was cut off by a kill goes."""
    try:
        _end_last_line(path)
        descriptor = _open(path, 0)
        try:
            _write_all(descriptor, _bytes_of(entry))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unwritable(path, error) from None


def _end_last_line(path: Path) -> None:
    """Take away what was cut off."""
    os.truncate(path, path.read_bytes().rfind(b"\n") + 1)


def _open(path: Path, more: int) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | more, _MODE)


def _bytes_of(entry: CassetteHeader | CassetteEntry) -> bytes:
    # A lone surrogate cannot be UTF-8; what replaces it is how JSON itself would write it.
    return write_cassette_line(entry).encode("utf-8", "backslashreplace")


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _unwritable(path: Path, error: OSError) -> StorageUnavailable:
    return StorageUnavailable(f"the recording cannot be written: {error.strerror}", where=str(path))
