"""How a program is shut in, where the system can do it: bubblewrap's arguments, and nothing else.

``isolated`` means: no network, everything read-only, an empty HOME and temporary folder that vanish with the process,
and only the working folder writable. ``launch`` asks for it. Without ``bwrap`` the answer is an error, never less.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from outfitter.errors import SpawnFailed

Sandbox: TypeAlias = Literal["none", "isolated"]


@dataclass(frozen=True, slots=True)
class Room:
    """What the program needs from the machine: itself, its folder, its HOME, where programs are, what it may read."""

    program: Path
    cwd: Path | None
    home: str | None
    search_path: str
    readable: tuple[Path, ...] = ()


def wrap_argv(policy: Sandbox, argv: tuple[str, ...], room: Room) -> tuple[str, ...]:
    """The arguments that start the same program under the policy; SpawnFailed when the system cannot keep it."""
    if policy == "none":
        return argv
    # The prefix comes first and ends with `--`, so that no argument of the program is read as one of bwrap's.
    return (_find_bwrap(room.search_path), *_isolation(room), "--", *argv)


def _find_bwrap(search_path: str) -> str:
    folders = [folder for folder in search_path.split(os.pathsep) if Path(folder).is_absolute()]
    found = shutil.which("bwrap", path=os.pathsep.join(folders)) if folders else None
    if found is None:
        raise SpawnFailed(
            "its sandbox is 'isolated' and bubblewrap (bwrap) is not on PATH",
            hint="on Linux install the package 'bubblewrap'; elsewhere set the sandbox to 'none'",
        )
    return found


def _isolation(room: Room) -> tuple[str, ...]:
    emptied = {str(Path(tempfile.gettempdir()).resolve()), "/tmp", "/var/tmp", "/run"}  # noqa: S108  # they are hidden
    if room.home is not None and Path(room.home).is_absolute() and Path(room.home) != Path("/"):
        emptied.add(os.path.realpath(room.home))
    seen = {str(room.program): os.path.realpath(room.program)} | {str(path): str(path) for path in room.readable}
    return (
        *("--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *(part for folder in sorted(emptied) for part in ("--tmpfs", folder)),
        *(part for path, real in seen.items() if _is_below(path, emptied) for part in ("--ro-bind", real, path)),
        *_working_folder(room.cwd, emptied),
    )


def _working_folder(cwd: Path | None, emptied: set[str]) -> tuple[str, ...]:
    if cwd is None:
        return ("--chdir", "/tmp")  # noqa: S108  # the empty one inside
    if any(Path(folder).is_relative_to(cwd) for folder in emptied):
        raise SpawnFailed(
            "its cwd is too wide for the sandbox: it holds HOME or the temporary folder",
            hint="set 'cwd' to a folder of the server's own",
        )
    return ("--bind", str(cwd), str(cwd), "--chdir", str(cwd))


def _is_below(path: str, folders: set[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)
