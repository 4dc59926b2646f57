"""A file that several processes write: opening it once more takes no lock away from who has it open."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

from outfitter.storage.shared_file import open_shared

WRITE_FROM_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from outfitter.storage.shared_file import open_shared
base = open_shared(Path(sys.argv[1]), lambda base: None)
base.execute("INSERT INTO said VALUES ('from another process')")
base.close()
"""


def prepare(base: sqlite3.Connection) -> None:
    """The table of these tests."""
    base.execute("CREATE TABLE IF NOT EXISTS said (what TEXT)")


def test_what_another_process_wrote_is_seen_by_every_connection(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "shared.db"
    writing = open_shared(path, prepare)
    writing.execute("INSERT INTO said VALUES ('from here')")
    looking = open_shared(path, prepare)
    for times in (1, 2):  # the last one to close takes the log away: the first of them must not be taken for it
        subprocess.run([sys.executable, "-c", WRITE_FROM_ANOTHER_PROCESS, str(path)], check=True)
        for base in (writing, looking):
            said = [what for (what,) in base.execute("SELECT what FROM said ORDER BY rowid")]
            assert said == ["from here", *["from another process"] * times]
    for base in (writing, looking):
        base.close()


def test_the_files_are_their_owner_s_alone(tmp_path: Path) -> None:
    base = open_shared(tmp_path / "shared.db", prepare)
    base.execute("INSERT INTO said VALUES ('x')")
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    base.close()
