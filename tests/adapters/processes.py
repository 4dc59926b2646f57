"""Which processes this test has started, and what anybody on the machine could read of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "--strict-mcp-config"
"""A word in the arguments of Claude Code that nothing else has there."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One process: its id, its arguments and its variables."""

    pid: int
    argv: str
    environ: dict[str, str]

    @property
    def is_alive(self) -> bool:
        """Whether it is there, and not only waiting to be collected."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
        except OSError:
            return False


def started() -> list[Seen]:
    """Every process below this one."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = list(parents.get(os.getpid(), []))
    for pid in found:  # it grows while it is gone through
        found += parents.get(pid, [])
    return [seen for seen in map(_look, found) if seen is not None]


def _look(pid: int) -> Seen | None:
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
        written = Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    except OSError:
        return None
    pairs = (line.partition("=") for line in written)
    return Seen(pid, argv, {name: value for name, _, value in pairs})
