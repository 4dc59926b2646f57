"""Which process groups are running, on disk, so that the next life of Outfitter can end what a killed one left.

One small file per group: pid, start time, owner, program name; never an argument or a variable. A group is ended only
when its owner is gone and the process of that pid started when the record says, so a reused pid is never touched.
Start times come from /proc; where there is none, nothing is recorded and nothing is ended.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

_LOG = logging.getLogger(__name__)
_PROC = Path("/proc")
_STATE, _GROUP, _START = 0, 2, 19  # fields 3, 5 and 22 of /proc/<pid>/stat, counted behind the name


class GroupRecord(msgspec.Struct, frozen=True):
    """One started group: its leader, and who started it."""

    pid: int
    started: int
    command: str
    owner: int
    owner_started: int
    boot: str
    space: str
    """The pid namespace: in another one the same numbers mean other processes."""
    pipes: tuple[int, ...] = ()
    """Its stdout and stderr, by which members of the group are known when the leader has gone."""


@dataclass(frozen=True, slots=True)
class _Process:
    state: str
    group: int
    started: int


class ProcessJournal:
    """The records of one folder. Give each installation its own; several Outfitter processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def record(self, pid: int, command: str, pipes: tuple[int, ...] = ()) -> Path | None:
        """Write that this group runs; the file to forget later, or None where start times cannot be known."""
        leader, owner = _look(pid), _look(os.getpid())
        if leader is None or owner is None:
            return None
        record = GroupRecord(pid, leader.started, command, os.getpid(), owner.started, _boot(), _space(), pipes)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._folder / f"{record.owner}-{pid}-{leader.started}.json"
        half = file.with_suffix(".half")
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(msgspec.json.encode(record))
        half.replace(file)
        return file

    def forget(self, file: Path | None) -> None:
        """Remove the record of a group that has ended."""
        if file is None:
            return
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            _LOG.warning("the process record %s cannot be removed: %s", file.name, error.strerror)

    def reap_orphans(self) -> tuple[GroupRecord, ...]:
        """End every group whose owner is gone, and say which were ended. Safe to call at any time."""
        if _look(os.getpid()) is None:
            return ()
        return tuple(record for file, record in self._records() if _is_ended_now(file, record))

    def _records(self) -> Iterator[tuple[Path, GroupRecord]]:
        for file in sorted(self._folder.glob("*.json")):
            try:
                yield file, msgspec.json.decode(file.read_bytes(), type=GroupRecord)
            except FileNotFoundError:
                continue  # another process forgot it meanwhile
            except (OSError, ValueError) as error:
                _LOG.warning("the process record %s cannot be read: %s", file.name, type(error).__name__)


def _is_ended_now(file: Path, record: GroupRecord) -> bool:
    if record.boot == _boot():
        if record.space != _space() or _has_started(record.owner, record.owner_started):
            return False
        ended = _end_group(record)
    else:
        ended = False  # the machine was restarted: nothing of it can be left
    file.unlink(missing_ok=True)
    return ended


def _end_group(record: GroupRecord) -> bool:
    leader = _look(record.pid)
    is_ours = leader.started == record.started if leader is not None else _has_kept_a_pipe(record)
    if not is_ours:
        return False
    try:
        os.killpg(record.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    _LOG.warning("ended process group %d (%s), left by an earlier Outfitter", record.pid, record.command)
    return True


def _has_kept_a_pipe(record: GroupRecord) -> bool:
    """Whether a process of the group, its leader gone, still holds a pipe that the leader was given."""
    pipes = {f"pipe:[{inode}]" for inode in record.pipes}
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()]
    members = [pid for pid in pids if (found := _look(pid)) is not None and found.group == record.pid]
    return any(link in pipes for pid in members for link in _open_files(pid))


def _open_files(pid: int) -> Iterator[str]:
    try:
        for file in (_PROC / str(pid) / "fd").iterdir():
            yield str(file.readlink())
    except OSError:
        return  # it went meanwhile, or is not ours to look into


def _has_started(pid: int, started: int) -> bool:
    process = _look(pid)
    return process is not None and process.started == started and process.state != "Z"


def _look(pid: int) -> _Process | None:
    """What /proc says of a process; None when it is gone or there is no /proc."""
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
        # The name stands in parentheses and may hold anything, even parentheses: fields count from the last one.
        fields = text.rpartition(")")[2].split()
        return _Process(fields[_STATE], int(fields[_GROUP]), int(fields[_START]))
    except (OSError, ValueError, IndexError):
        return None


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _space() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""
