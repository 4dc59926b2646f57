"""A small SQLite file that several processes of a machine write: in write-ahead mode, for its owner alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path


def open_shared(path: Path, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    """A connection for any thread, prepared. ``sqlite3.Error`` and ``OSError`` are the caller's to tell.

    One process at a time opens it: SQLite does not wait for another that is about to change a file's mode.
    """
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():  # closing a file that SQLite has open here would end this process's locks of it
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # the files beside it take its mode over
        base = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        try:
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -500"):
                base.execute(f"PRAGMA {pragma}")
            prepare(base)
        except BaseException:
            base.close()
            raise
    finally:
        os.close(lock)
    return base
