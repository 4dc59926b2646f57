"""What stands in a team's files? Bounded reads of a folder, which never lead out of it, and never twice for the same.

A ``Shelf`` is a place of files by key (``agents/x/charter.md``): this file has the one on disk, ``folder_git`` the one
on a branch. ``Files`` remembers what was made of each file until its version changes. Nothing here raises for bad
content: what could not be read is a note.
"""

from __future__ import annotations

import codecs
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar, cast

T = TypeVar("T")
Version: TypeAlias = tuple[object, ...]
"""Equal as long as a file is the same."""

MAX_BYTES = 16 * 1024 * 1024
"""How much of one file is read."""
MAX_NAMES = 20_000
"""How many files of one folder are looked at."""
MANY_NAMES = 1000
MAX_TOTAL = 64 * 1024 * 1024
"""How much is read of the files of one folder together."""
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY = b"\0"
_FRESH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Raw:
    """The bytes of a file, at most ``MAX_BYTES``: its end when ``is_cut``. ``fault`` says why there are none."""

    data: bytes = field(repr=False, default=b"")
    is_cut: bool = False
    fault: str = ""
    time: float | None = None
    """When it was last changed, in seconds since 1970; None when the place does not know."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file, and what is to be known about it."""

    key: str
    text: str = field(repr=False)
    notes: tuple[str, ...] = ()
    time: float | None = None


class Shelf(Protocol):
    """A place of files by key."""

    def version(self, key: str) -> Version | None:
        """What the file is now; None when there is none."""
        ...

    def names(self, folder: str) -> Mapping[str, Version]:
        """The files of a folder, not those below, with their versions."""
        ...

    def folders(self, folder: str) -> Sequence[str]:
        """The folders in a folder."""
        ...

    def read(self, keys: Iterable[str]) -> Mapping[str, Raw]:
        """What stands in these files."""
        ...


@dataclass(frozen=True, slots=True)
class _Sweep:
    """What a folder with very many files was found to hold, and when."""

    folder: Version | None
    at: float
    names: Mapping[str, Version]


@dataclass(slots=True)
class DiskShelf:
    """A folder on disk. A link that leads out of it is not followed.

    A folder with more than ``MANY_NAMES`` files is looked through at once when files come or go, but only once a second
    when they are written in their place.
    """

    root: Path
    _sweeps: dict[str, _Sweep] = field(default_factory=dict[str, _Sweep])

    def version(self, key: str) -> Version | None:
        """Times, size and place of the file."""
        try:
            found = os.stat(f"{self.root}/{key}")  # noqa: PTH116 - a Path costs more than the look
        except (OSError, ValueError):
            return None
        return _version(found) if stat.S_ISREG(found.st_mode) else None

    def names(self, folder: str) -> Mapping[str, Version]:
        """The files with their versions, of at most ``MAX_NAMES``; the same mapping when it was not looked again."""
        known, now, at = self._sweeps.get(folder), self._folder(folder), time.monotonic()
        if known is not None and known.folder == now and at - known.at < _FRESH_SECONDS:
            return known.names
        found = self._sweep(folder)
        if len(found) > MANY_NAMES:
            self._sweeps[folder] = _Sweep(now, at, found)
        return found

    def _folder(self, folder: str) -> Version | None:
        try:
            return _version(os.stat(f"{self.root}/{folder}"))  # noqa: PTH116 - as above
        except (OSError, ValueError):
            return None

    def _sweep(self, folder: str) -> dict[str, Version]:
        found: dict[str, Version] = {}
        for entry in self._scan(folder):
            try:
                seen = entry.stat()
            except OSError:
                continue
            if stat.S_ISREG(seen.st_mode):
                found[entry.name] = _version(seen)
        return found

    def folders(self, folder: str) -> Sequence[str]:
        """The folders in a folder, sorted; those whose name starts with '.' or '_' are not the team's own."""
        names = (entry.name for entry in self._scan(folder) if not entry.name.startswith((".", "_")) and _is_dir(entry))
        return sorted(names)

    def _scan(self, folder: str) -> list[os.DirEntry[str]]:
        found: list[os.DirEntry[str]] = []
        try:
            if self._inside(folder) is None:
                return []
            with os.scandir(f"{self.root}/{folder}") as entries:
                for entry in entries:
                    if len(found) >= MAX_NAMES:
                        break
                    found.append(entry)
        except (OSError, ValueError):
            return []
        return found

    def read(self, keys: Iterable[str]) -> Mapping[str, Raw]:
        """What stands in these files, one after the other."""
        return {key: self._read(key) for key in keys}

    def _read(self, key: str) -> Raw:
        real = self._inside(key)
        if real is None:
            return Raw(fault="it leads out of the folder and is not followed")
        try:
            handle = os.open(real, _OPEN)
        except OSError as error:
            return Raw(fault=f"it cannot be read: {error.strerror}")
        try:
            return _read_open(handle)
        except OSError as error:
            return Raw(fault=f"it cannot be read: {error.strerror}")
        finally:
            os.close(handle)

    def _inside(self, key: str) -> str | None:
        """Where the file really is; None when that is somewhere else."""
        root = os.path.realpath(self.root)
        real = os.path.realpath(f"{root}/{key}")
        return real if real == root or real.startswith(f"{root}{os.sep}") else None


def _read_open(handle: int) -> Raw:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        return Raw(fault="it is not a file")
    start = max(0, found.st_size - MAX_BYTES)
    parts: list[bytes] = []
    left = MAX_BYTES
    os.lseek(handle, start, os.SEEK_SET)
    while left and (part := os.read(handle, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return Raw(b"".join(parts), is_cut=start > 0, time=found.st_mtime)


def _version(found: os.stat_result) -> Version:
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def decode(key: str, raw: Raw) -> Text:
    """The text of the bytes; a file without one has an empty text and a note."""
    if raw.fault:
        return Text(key, "", (f"{key}: {raw.fault}",), raw.time)
    data, notes = raw.data, ()
    if raw.is_cut:
        data = data.partition(b"\n")[2]
        notes = (f"{key}: only the last {MAX_BYTES // 1024 // 1024} MiB were read",)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    elif _BINARY in data:
        return Text(key, "", (*notes, f"{key}: it is not a text; it was not read"), raw.time)
    else:
        text = data.decode("utf-8-sig", "replace")
    if "\ufffd" in text:
        notes = (*notes, f"{key}: some of it is not UTF-8 and stands as \ufffd")
    return Text(key, text.replace("\r\n", "\n").replace("\r", "\n"), notes, raw.time)


@dataclass(slots=True)
class Files:
    """What was made of each file of a shelf, remembered until its version changes. Not safe for several threads."""

    shelf: Shelf
    _made: dict[tuple[str, object], tuple[Version, object]] = field(
        default_factory=dict[tuple[str, object], tuple[Version, object]]
    )

    _listed: dict[object, tuple[Mapping[str, Version], object]] = field(
        default_factory=dict[object, tuple[Mapping[str, Version], object]]
    )
    """The last long list by its maker, and the last long folder by its name, with what it was made of."""

    def make(self, key: str, maker: Callable[[Text], T]) -> T | None:
        """What the maker makes of this file; None when there is no such file."""
        version = self.shelf.version(key)
        return None if version is None else self.make_all({key: version}, maker)[0]

    def make_all(self, versions: Mapping[str, Version], maker: Callable[[Text], T]) -> list[T]:
        """What the maker makes of each of these files; those that are as before are not read again."""
        last = self._listed.get(maker)
        if last is not None and last[0] is versions:
            return cast("list[T]", last[1])
        stale = [key for key, version in versions.items() if not self._is_kept(key, maker, version)]
        left = MAX_TOTAL
        for key, raw in self.shelf.read(stale).items() if stale else ():
            left -= len(raw.data)
            kept = raw if left >= 0 else Raw(fault="it was not read: the files of its folder are too large together")
            self._made[key, maker] = (versions[key], maker(decode(key, kept)))
        if stale:
            self._forget(maker, versions)
        made = [cast("T", self._made[key, maker][1]) for key in versions]
        if len(versions) > MANY_NAMES:
            self._listed[maker] = (versions, made)
        return made

    def _is_kept(self, key: str, maker: object, version: Version) -> bool:
        kept = self._made.get((key, maker))
        return kept is not None and kept[0] == version

    def _forget(self, maker: object, versions: Mapping[str, Version]) -> None:
        """Drop what was made of files that are gone from the folder of these."""
        folder = next(iter(versions)).rpartition("/")[0]
        made = [kept for kept in self._made if kept[1] is maker and kept[0].rpartition("/")[0] == folder]
        for kept in made:
            if kept[0] not in versions and folder:
                del self._made[kept]

    def under(self, folder: str, suffix: str = ".md") -> Mapping[str, Version]:
        """The files of a folder by key, sorted, with their versions; hidden ones and other kinds are left out."""
        names = self.shelf.names(folder)
        last = self._listed.get(folder)
        if last is not None and last[0] is names:
            return cast("Mapping[str, Version]", last[1])
        found = {
            f"{folder}/{name}": names[name]
            for name in sorted(names)
            if name.lower().endswith(suffix) and not name.startswith(".")
        }
        if len(found) > MANY_NAMES:
            self._listed[folder] = (names, found)
        return found
