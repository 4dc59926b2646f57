"""What agents have used of their budgets, in one file that every process of a machine shares.

A table of fixed slots, mapped into memory: what was counted is there when the process is killed. A slot is found by
the digest of its key, and used again when what it counted is long over. Whoever changes the table holds the lock of the
file. A process that is alone may keep the lock, and looks now and then whether another wants it.
What is counted and why is ``policy.metering``; the digests say nothing about whom.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from outfitter.errors import StorageUnavailable

if sys.platform == "win32":  # it has no such locks: there is one process
    LOCK_EX = LOCK_NB = LOCK_UN = 0

    def flock(file: int, how: int) -> None:
        """Nothing is locked."""
        del file, how

else:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

_MAGIC, _VERSION = 0x5245474445_4C4F46, 1
_SLOTS = 1 << 16
_WORDS, _WORD = 8, 8
_WANTED = 3
"""The word of the head by which others ask the one who keeps the lock for it."""
_KEY, _REST, _COUNT, _UNTIL = 0, 1, 3, 5
_MOST_STEPS = 4096
_NOW = LOCK_EX | LOCK_NB
_TRIES, _PAUSE_SECONDS, _PATIENCE_SECONDS = 64, 0.0005, 10.0
_ALONE_AFTER = 30.0
"""So long after another has wanted the lock it is not kept from call to call."""


@dataclass(slots=True, eq=False)
class LedgerFile:
    """The table. ``open_ledger`` makes it; ``breathe`` must be called now and then when it keeps the lock."""

    path: Path
    words: memoryview
    keeps: bool
    """Whether the lock is kept from call to call, as long as nobody else wants it: for a process with one thread."""
    _file: int
    _map: mmap.mmap
    is_held: bool = False
    """Whether the lock is this process's, and stays so until ``breathe``."""
    _shared_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> None:
        """Have the table alone, among threads and processes; StorageUnavailable when another does not give it."""
        self._lock.acquire()
        try:
            flock(self._file, _NOW)
        except BlockingIOError:
            self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end:
            for _ in range(_TRIES):
                if _claim(self._file):
                    return
            self.words[_WANTED] = 1
            time.sleep(_PAUSE_SECONDS)
        self._lock.release()
        told = "calls cannot be counted: another process does not let go of the budgets"
        raise StorageUnavailable(told, where=str(self.path), hint="end the process that hangs")

    def give(self) -> None:
        """Let others have it; one that keeps it does so when it is asked."""
        if self.keeps and time.monotonic() >= self._shared_until:
            self.is_held = True
        else:
            flock(self._file, LOCK_UN)
        self._lock.release()

    def breathe(self) -> None:
        """Let go of a lock that is kept and wanted. It is not kept again for a while."""
        if self.is_held and self.words[_WANTED]:
            self.words[_WANTED] = 0
            self._shared_until = time.monotonic() + _ALONE_AFTER
            self.is_held = False
            flock(self._file, LOCK_UN)

    def find(self, key: bytes) -> int | None:
        """The place of a key; None when it has none."""
        first, rest = _halves(key)
        words, place = self.words, self._home(first)
        for _ in range(_MOST_STEPS):
            if words[place] == first and words[place + _REST] == rest:
                return place
            if not words[place]:
                return None
            place = self._next(place)
        return None

    def place(self, key: bytes, now: float, until: float) -> int:
        """The place of a key, made when it has none; StorageUnavailable when the table is full."""
        words, found = self.words, self.find(key)
        if found is None:
            found = self._make(key, now)
        if words[found + _UNTIL] < until:
            words[found + _UNTIL] = int(until) + 1
        return found

    def _make(self, key: bytes, now: float) -> int:
        """A slot that is empty, or whose count is over. Its end is written last: until then nobody counts there."""
        first, rest = _halves(key)
        words, place = self.words, self._home(first)
        for _ in range(_MOST_STEPS):
            if not words[place] or words[place + _UNTIL] < now:
                words[place + _UNTIL] = 0
                for other in range(_REST + 1, _WORDS):
                    words[place + other] = 0
                words[place + _REST] = rest
                words[place] = first
                return place
            place = self._next(place)
        told = "calls cannot be counted: the table of the budgets is full"
        hint = "fewer budgets for single servers and tools, or wait until older counts are over"
        raise StorageUnavailable(told, where=str(self.path), hint=hint)

    def _home(self, first: int) -> int:
        # The first slot is the head of the file.
        return (1 + (first >> 1) % (self._slots - 1)) * _WORDS

    def _next(self, place: int) -> int:
        place += _WORDS
        return _WORDS if place >= len(self.words) else place

    @property
    def _slots(self) -> int:
        return len(self.words) // _WORDS

    def close(self) -> None:
        """Let it go; what was counted stays."""
        if self._file >= 0:
            file, self._file = self._file, -1
            self.words.release()
            self._map.close()
            os.close(file)


def open_ledger(path: Path, *, keeps: bool = False, slots: int = _SLOTS) -> LedgerFile:
    """The table in a file, made when there is none. A damaged one is not begun anew: StorageUnavailable."""
    try:
        if not path.exists():
            _make_file(path, slots)
        file = os.open(path, os.O_RDWR)
    except OSError as error:
        raise StorageUnavailable(f"calls cannot be counted: {error.strerror}", where=str(path)) from None
    size = os.fstat(file).st_size
    if size < 2 * _WORDS * _WORD or size % (_WORDS * _WORD):
        os.close(file)
        raise _damaged(path, f"it has {size} bytes")
    try:
        mapped = mmap.mmap(file, size)
    except OSError as error:
        os.close(file)
        raise StorageUnavailable(f"calls cannot be counted: {error.strerror}", where=str(path)) from None
    words = memoryview(mapped).cast("q")
    ledger = LedgerFile(path, words, keeps, file, mapped)
    why = _fault_in(words)
    if why:
        ledger.close()
        raise _damaged(path, why)
    return ledger


def _fault_in(words: memoryview) -> str:
    """What is wrong with a table; nothing when it can be used."""
    if words[0] != _MAGIC or words[1] != _VERSION:
        return "it does not begin as it should"
    if words[2] * _WORDS != len(words):
        return "a part of it is missing"
    is_negative = any(min(words[_WORDS + word :: _WORDS].tolist()) < 0 for word in (_COUNT, _UNTIL))
    return "it has negative counts" if is_negative else ""


def _damaged(path: Path, why: str) -> StorageUnavailable:
    told = f"what agents have used of their budgets cannot be read: {why}"
    hint = "put a copy back, or remove the file: then every budget begins anew"
    return StorageUnavailable(told, where=str(path), hint=hint)


def _make_file(path: Path, slots: int) -> None:
    """Make it whole beside its place, then name it: nobody ever sees half a table, and the disk has room for all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        size = slots * _WORDS * _WORD
        if sys.platform == "linux":
            os.posix_fallocate(file, 0, size)
        else:
            os.pwrite(file, bytes(size), 0)
        os.pwrite(file, b"".join(word.to_bytes(_WORD, sys.byteorder) for word in (_MAGIC, _VERSION, slots)), 0)
        os.fsync(file)
        with suppress(FileExistsError):  # another process was first
            os.link(beside, path)
    finally:
        os.close(file)
        beside.unlink(missing_ok=True)


def _halves(key: bytes) -> tuple[int, int]:
    """A key as two words, the first of which is never nothing."""
    first = int.from_bytes(key[:8], "little", signed=True) | 1
    return first, int.from_bytes(key[8:16], "little", signed=True)


def _claim(file: int) -> bool:
    """Take the lock of the file; False when another holds it."""
    try:
        flock(file, _NOW)
    except BlockingIOError:
        return False
    return True
