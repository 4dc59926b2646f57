"""Files on disk: read whole, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from outfitter.errors import StorageUnavailable


def read_bytes(path: str | Path, limit: int) -> bytes:
    """The file's bytes, at most one more than the limit; StorageUnavailable when it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path costs as much as the read itself
            is_small = os.fstat(file.fileno()).st_size <= limit
            return file.read() if is_small else file.read(limit + 1)  # a large limit would be allocated in full
    except OSError as error:
        raise StorageUnavailable(f"cannot read: {error.strerror or error}", where=str(path)) from error


def write_files(changes: Mapping[Path, str | None]) -> None:
    """Write every file (None deletes it), each atomically; when one fails, all are put back as they were."""
    change = _Change()
    try:
        for path, text in changes.items():
            change.prepare(path, text)
        for path in changes:
            change.carry_out(path)
    except BaseException as error:
        change.undo()
        if not isinstance(error, OSError):
            raise
        message = f"cannot write: {error.strerror or error}; nothing was changed"
        raise StorageUnavailable(message, where=str(error.filename or "")) from error
    finally:
        change.clean_up()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, atomically, with the folder it is in; no promise beyond a crash."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError as error:
        raise StorageUnavailable(f"cannot write: {error.strerror or error}", where=str(path)) from error


class _Change:
    """What is being written: the new files beside their places, and what stood there before."""

    __slots__ = ("_before", "_done", "_folders", "_staged")

    def __init__(self) -> None:
        self._before: dict[Path, bytes | None] = {}
        self._staged: dict[Path, Path] = {}
        self._folders: list[Path] = []
        self._done: list[Path] = []

    def prepare(self, path: Path, text: str | None) -> None:
        """Do everything that can fail without anybody seeing a difference."""
        self._before[path] = path.read_bytes() if path.is_file() else None
        if text is None:
            return
        self._make_folder(path.parent)
        self._staged[path] = _stage(path, text.encode())

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir()
            self._folders.append(folder)

    def carry_out(self, path: Path) -> None:
        """Put the new file in its place, or take the old one away."""
        staged = self._staged.get(path)
        if staged is None:
            path.unlink(missing_ok=True)
        else:
            staged.replace(path)
            del self._staged[path]
        self._done.append(path)

    def undo(self) -> None:
        """Put back what was there, as far as the disk lets us."""
        for path in self._done:
            content = self._before[path]
            with contextlib.suppress(OSError):
                if content is None:
                    path.unlink()
                else:
                    _stage(path, content).replace(path)
        self.clean_up()
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def clean_up(self) -> None:
        """Remove the files that never came into place."""
        for staged in self._staged.values():
            with contextlib.suppress(OSError):
                staged.unlink()
        self._staged.clear()


def _stage(path: Path, content: bytes) -> Path:
    """The content in a temporary file beside its place, safely on disk."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".tmp", dir=path.parent)
    staged = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        staged.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    return staged
