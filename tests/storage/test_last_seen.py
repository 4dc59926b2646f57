"""What servers last said of themselves: kept, shared, bounded, and never in the way."""

from __future__ import annotations

import os
from pathlib import Path

from outfitter.resolution import SeenServer
from outfitter.storage import LastSeenFolder

SEEN = SeenServer(({"name": "x"},), {"tools": {}}, "How to use it.")


def test_what_was_seen_is_found_by_others_and_what_cannot_be_read_was_never_seen(tmp_path: Path) -> None:
    one, other = LastSeenFolder(tmp_path / "seen"), LastSeenFolder(tmp_path / "seen")
    assert other.recall("x.1") is None
    one.keep("x.1", SEEN)
    assert other.recall("x.1") == SEEN
    assert other.recall("x.1") is other.recall("x.1")
    (file,) = (tmp_path / "seen").glob("*.json")
    assert file.stat().st_mode & 0o077 == 0
    file.write_text("{")
    assert other.recall("x.1") is None
    other.keep("x.1", SEEN)
    assert one.recall("x.1") == SEEN


def test_of_many_ways_to_ask_a_server_the_newest_are_kept(tmp_path: Path) -> None:
    seen = LastSeenFolder(tmp_path)
    for number in range(40):
        seen.keep(f"x.{number}", SeenServer(({"name": str(number)},)))
        os.utime(tmp_path / f"x.{number}.json", ns=(number, number))
    seen.keep("y.1", SEEN)
    assert len(list(tmp_path.glob("x.*.json"))) == 16
    fresh = LastSeenFolder(tmp_path)
    assert (fresh.recall("x.0"), fresh.recall("y.1")) == (None, SEEN)
    assert fresh.recall("x.38") is not None


def test_where_nothing_can_be_written_it_is_remembered_until_the_end(tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("a file in the place of the folder")
    seen = LastSeenFolder(tmp_path / "seen")
    seen.keep("x.1", SEEN)
    assert seen.recall("x.1") == SEEN
