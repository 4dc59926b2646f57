"""Which processes came of one, and their end. Known by pid and start time, so that a reused pid is never touched.

Where there is no ``/proc`` nothing is found, and the end of a program is left to the program that started it.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

_PROC = Path("/proc")
_STATE, _PARENT, _START = 0, 1, 19  # fields 3, 4 and 22 of /proc/<pid>/stat, counted behind the name
_GRACE = 2.0
_LOOK_AGAIN = 0.02


@dataclass(frozen=True, slots=True)
class Known:
    """A process at one moment."""

    pid: int
    started: int


def tree_of(pid: int | None) -> tuple[Known, ...]:
    """The process and all that came of it, as they are now."""
    if pid is None or (root := _look(pid)) is None:
        return ()
    children: dict[int, list[Known]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (seen := _look(int(entry.name))) is not None:
            children.setdefault(seen[0], []).append(seen[1])
    found = [root[1]]
    for process in found:  # it grows while it is gone through
        found += children.get(process.pid, [])
    return tuple(found)


async def end_all(processes: tuple[Known, ...]) -> None:
    """Have them gone: a word first, then by force. Not to be cancelled half-way."""
    with anyio.CancelScope(shield=True):
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in filter(_is_alive, processes):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, number)
            with anyio.move_on_after(_GRACE):
                while any(map(_is_alive, processes)):  # noqa: ASYNC110 - nobody tells of the end of a foreign process
                    await anyio.sleep(_LOOK_AGAIN)


def _is_alive(process: Known) -> bool:
    seen = _look(process.pid)
    return seen is not None and seen[1] == process


def _look(pid: int) -> tuple[int, Known] | None:
    """The parent and the process; None when it is gone or only waits to be collected."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[_STATE] in {"Z", "X"}:
        return None
    return int(fields[_PARENT]), Known(pid, int(fields[_START]))
