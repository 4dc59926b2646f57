"""A journal that is read while it is written: no line is lost or torn, wherever the reader was."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from outfitter.storage import Journal, drain


def line(number: int) -> bytes:
    return json.dumps({"call_id": f"c{number}", "agent": "a", "rule": "x" * 400}).encode() + b"\n"


@dataclass(slots=True)
class Busy:
    """A store, while whose work more calls come in: as many as each time is said."""

    journal: Journal
    more: int
    taken: list[str] = field(default_factory=list[str])
    written: int = 0
    _place: int = 0

    def write(self, count: int) -> None:
        """So many calls more."""
        for _ in range(count):
            self.journal.make_room()
            self.journal.append(line(self.written))
            self.written += 1

    def place(self, segment: str) -> int:
        """How far it was taken."""
        del segment
        return self._place

    def take(self, segment: str, place: int, lines: bytes) -> None:
        """Take whole lines, slowly."""
        del segment
        self.taken += [json.loads(one)["call_id"] for one in lines.splitlines()]
        self._place = place + len(lines)
        if self.written < 8000:
            self.write(self.more)

    def forget(self, segment: str) -> None:
        """The segment is gone."""
        del segment


@pytest.mark.promise("RECORD-ONCE")
@pytest.mark.parametrize("begin", [1, 1000, 1190])
@pytest.mark.parametrize("more", [1, 60, 1200, 2500])
def test_lines_that_are_written_while_others_are_read_are_not_lost(tmp_path: Path, begin: int, more: int) -> None:
    journal = Journal(tmp_path / "j")
    store = Busy(journal, more)
    store.write(begin)
    for _ in range(10_000):
        drain(tmp_path / "j", store)
        if len(store.taken) >= 8000:
            break
    journal.close()
    drain(tmp_path / "j", store)
    assert store.taken == [f"c{number}" for number in range(store.written)]


def test_lines_that_find_no_room_are_told_apart_from_those_that_are_written(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from outfitter.storage import Journal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "journal.make_room()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1050, resource.RLIM_INFINITY))\n"
        "lines = [b'%099d\\n' % number for number in range(16)]\n"
        "assert journal.append_each(lines) == 10\n"
        "assert journal.append_each(lines[10:]) == 0\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "assert journal.append_each(lines[10:]) == 6\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
    (segment,) = tmp_path.iterdir()
    assert segment.read_bytes().rstrip(b"\0") == b"".join(b"%099d\n" % number for number in range(16))
