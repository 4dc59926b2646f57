"""Which processes belong to which run, wherever they have gone: found by a mark in the environment they began with.

A process may leave its group and its session, and a runner may be killed before it ends its own. What carries the mark
of a run is ended with the run; what carries the mark of a runner that is gone is ended by the next one on this machine.
A runner in a container counts processes on its own, so its marks mean nothing elsewhere and are left alone there. Needs
/proc; elsewhere nothing is found, and the process group is all there is.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_log = logging.getLogger(__name__)
RUN_MARK, OWNER_MARK = "OUTFITTER_RUN_ID", "OUTFITTER_RUN_OWNER"
_PROC = Path("/proc")
_ROUNDS, _ROUND_SECONDS = 50, 0.02


@dataclass(frozen=True, slots=True)
class _Found:
    pid: int
    run_id: str
    owner: str


def marks(run_id: str) -> dict[str, str]:
    """The variables that every process of a run is started with."""
    name = _name_of(os.getpid())
    return {RUN_MARK: run_id, OWNER_MARK: f"{name}@{_space()}" if name else ""}


def end_run(run_id: str) -> int:
    """End every process of a run, whoever started it; how many there were."""
    return _end(lambda found: found.run_id == run_id)


def end_orphans() -> int:
    """End every process of a run whose runner is gone; how many there were."""
    return _end(lambda found: bool(found.owner) and not _is_alive(found.owner))


def _end(is_meant: Callable[[_Found], bool]) -> int:
    """Kill what is meant until nothing of it is left: a process may start others while it is looked for.

    One that is dying has lost its marks before it is gone, so it is waited for by its name.
    """
    ended: set[str] = set()
    for _ in range(_ROUNDS):
        meant = [found for found in _marked() if is_meant(found)]
        if not meant and not any(map(_is_alive, ended)):
            break
        for found in meant:
            ended.add(_name_of(found.pid) or str(found.pid))
            _kill(found)
        time.sleep(_ROUND_SECONDS)
    return len(ended)


def _kill(found: _Found) -> None:
    try:
        os.kill(found.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it went by itself
    except PermissionError:
        _log.warning("process %d of run %s may not be ended", found.pid, found.run_id)


def _marked() -> Iterator[_Found]:
    own, space = os.getpid(), _space()
    for folder in _PROC.iterdir() if _PROC.is_dir() else ():
        if folder.name.isdecimal() and int(folder.name) != own:
            variables = _environment(folder)
            owner, _, place = variables.get(OWNER_MARK, "").rpartition("@")
            if RUN_MARK in variables and place == space:
                yield _Found(int(folder.name), variables[RUN_MARK], owner)


def _environment(folder: Path) -> Mapping[str, str]:
    """The marks in the environment that a process was started with; none for one of somebody else."""
    try:
        content = (folder / "environ").read_bytes()
    except OSError:
        return {}
    if RUN_MARK.encode() not in content:
        return {}
    pairs = (part.decode("utf-8", "replace").partition("=") for part in content.split(b"\0"))
    return {name: value for name, _, value in pairs if name in {RUN_MARK, OWNER_MARK}}


def _space() -> str:
    """In which numbers of processes mean something: those of a container are other ones."""
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _name_of(pid: int) -> str | None:
    """What means this process and no later one of the same number; None when it is gone or there is no /proc."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return None
    return None if fields[0] == "Z" else f"{pid}-{fields[19]}-{boot}"


def _is_alive(owner: str) -> bool:
    pid = owner.partition("-")[0]
    return pid.isdecimal() and _name_of(int(pid)) == owner
