"""The journal and the audit database: nothing is lost, nothing is there twice, a full disk is told before a call."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from outfitter.errors import StorageUnavailable
from outfitter.storage import Journal, SqliteAudit, drain


def line(number: int, **more: object) -> bytes:
    return json.dumps({"call_id": f"c{number}", "agent": "a", "outcome": "done", **more}).encode() + b"\n"


def filled(folder: Path, *numbers: int) -> Journal:
    journal = Journal(folder)
    for number in numbers:
        journal.make_room()
        journal.append(line(number))
    return journal


def idents(audit: SqliteAudit) -> list[str]:
    return [call["call_id"] for call in audit.calls(limit=100_000)]


def test_every_line_is_taken_once_while_it_is_written(tmp_path: Path) -> None:
    audit = SqliteAudit(tmp_path / "audit.sqlite")
    journal = filled(tmp_path / "j", 1, 2)
    assert drain(tmp_path / "j", audit) > 0
    assert drain(tmp_path / "j", audit) == 0
    journal.append(line(3))
    drain(tmp_path / "j", audit)
    assert idents(audit) == ["c1", "c2", "c3"]
    assert len(list((tmp_path / "j").iterdir())) == 1, "a segment in use stays"
    journal.close()
    drain(tmp_path / "j", audit)
    assert list((tmp_path / "j").iterdir()) == []
    assert idents(audit) == ["c1", "c2", "c3"]
    audit.close()


def test_segments_rotate_and_none_is_forgotten(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", segment_bytes=2000)
    for number in range(20_000):
        journal.make_room()
        journal.append(line(number))
    assert len(list((tmp_path / "j").iterdir())) > 1
    audit = SqliteAudit(tmp_path / "audit.sqlite")
    drain(tmp_path / "j", audit)
    assert idents(audit) == [f"c{number}" for number in range(20_000)]
    journal.close()
    audit.close()


def test_a_line_that_was_never_finished_is_skipped_and_those_after_it_are_read(tmp_path: Path) -> None:
    journal = filled(tmp_path / "j", 1)
    (segment,) = (tmp_path / "j").iterdir()
    journal.close()
    with segment.open("ab") as file:
        file.write(b'{"call_id": "half')
    audit = SqliteAudit(tmp_path / "audit.sqlite")
    drain(tmp_path / "j", audit)
    assert idents(audit) == ["c1"]
    other = tmp_path / "j" / "9-9-9.calls"
    other.write_bytes(b'{"call_id": "half\n' + line(2) + b"[1]\n" + line(3))
    drain(tmp_path / "j", audit)
    assert idents(audit) == ["c1", "c2", "c3"]
    audit.close()


def test_a_store_that_died_before_it_was_told_takes_nothing_twice(tmp_path: Path) -> None:
    filled(tmp_path / "j", 1, 2).close()
    (segment,) = (tmp_path / "j").iterdir()
    kept = segment.read_bytes()
    audit = SqliteAudit(tmp_path / "audit.sqlite")
    drain(tmp_path / "j", audit)
    segment.write_bytes(kept)
    drain(tmp_path / "j", audit)
    assert idents(audit) == ["c1", "c2"]
    audit.close()


@pytest.mark.promise("RECORD-KILL")
def test_what_was_written_survives_kill_9_of_the_process(tmp_path: Path) -> None:
    code = (
        "import json, sys\nfrom pathlib import Path\nfrom outfitter.storage import Journal\n"
        "journal = Journal(Path(sys.argv[1]))\nn = 0\n"
        "while True:\n    journal.make_room()\n"
        "    journal.append(json.dumps({'call_id': f'c{n}', 'agent': 'a', 'outcome': 'done'}).encode() + b'\\n')\n"
        "    print(n, flush=True)\n    n += 1\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path / "j"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answered = [int(process.stdout.readline()) for _ in range(500)]
        os.kill(process.pid, signal.SIGKILL)
        answered += [int(told) for told in process.stdout.read().splitlines() if told]
    audit = SqliteAudit(tmp_path / "audit.sqlite")
    drain(tmp_path / "j", audit)
    found = idents(audit)
    assert len(found) == len(set(found))
    assert {f"c{number}" for number in answered} <= set(found)
    assert list((tmp_path / "j").iterdir()) == [], "nobody writes there any more"
    audit.close()


def test_a_full_disk_is_told_before_the_call_and_passes(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    journal = Journal(tmp_path / "j")
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StorageUnavailable, match="cannot be recorded"):
            journal.make_room()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    journal.make_room()
    journal.append(line(1))
    journal.close()


def test_calls_are_found_by_agent_server_tool_and_outcome(tmp_path: Path) -> None:
    journal = filled(tmp_path / "j", 1)
    journal.append(line(2, server="s", tool="t", shown="s_t"))
    journal.append(line(3, agent="b", outcome="denied", shown="s_t"))
    audit = SqliteAudit(tmp_path / "audit.sqlite")
    drain(tmp_path / "j", audit)

    def found(**wanted: str) -> list[str]:
        return [call["call_id"] for call in audit.calls(wanted=wanted)]

    assert found(agent="b") == ["c3"]
    assert found(server="s") == found(tool="t") == ["c2"]
    assert found(tool="s_t") == ["c2", "c3"]
    assert found(outcome="denied") == ["c3"]
    journal.close()
    audit.close()
