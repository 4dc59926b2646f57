"""A look at a registry's file without opening the registry: is it sound, and has it moved on?

For whoever remembers what it held, and wants to know whether that still is so before the database is loaded, which
takes a while. Nothing is written, repaired or judged here: when in doubt the answer is that nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

_PATIENCE = 1.0


def glance(path: Path) -> Mapping[str, int] | None:
    """The numbers that move with every change; None when the file is missing, damaged, busy or no registry."""
    import sqlite3

    try:
        where = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(where, uri=True, timeout=_PATIENCE)) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                return None
            return {str(name): int(value) for name, value in connection.execute("SELECT name, value FROM counters")}
    except (sqlite3.Error, OSError, ValueError):
        return None
