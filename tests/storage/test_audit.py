"""The journal and the audit database: nothing is lost, nothing is there twice, a full disk is told before a call."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from outfitter.basics import Secret
from outfitter.errors import StorageUnavailable
from outfitter.storage import AuditStore, Journal, drain, open_audit


def line(number: int, **more: object) -> bytes:
    return json.dumps({"call_id": f"c{number}", "agent": "a", "outcome": "done", **more}).encode() + b"\n"


def filled(folder: Path, *numbers: int) -> Journal:
    journal = Journal(folder)
    for number in numbers:
        journal.make_room()
        journal.append(line(number))
    return journal


def idents(audit: AuditStore, after: int = 0) -> list[str]:
    return [call["call_id"] for call in audit.calls(after, limit=100_000)]


def test_every_line_is_taken_once_while_it_is_written(tmp_path: Path, audit: AuditStore) -> None:
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
    assert audit.last() == 3


def test_segments_rotate_and_none_is_forgotten(tmp_path: Path, audit: AuditStore) -> None:
    journal = Journal(tmp_path / "j", segment_bytes=2000)
    for number in range(20_000):
        journal.make_room()
        journal.append(line(number))
    assert len(list((tmp_path / "j").iterdir())) > 1
    drain(tmp_path / "j", audit)
    assert idents(audit) == [f"c{number}" for number in range(20_000)]
    journal.close()


def test_a_line_that_was_never_finished_is_skipped_and_those_after_it_are_read(
    tmp_path: Path, audit: AuditStore
) -> None:
    journal = filled(tmp_path / "j", 1)
    (segment,) = (tmp_path / "j").iterdir()
    journal.close()
    with segment.open("ab") as file:
        file.write(b'{"call_id": "half')
    drain(tmp_path / "j", audit)
    assert idents(audit) == ["c1"]
    other = tmp_path / "j" / "9-9-9.calls"
    bad = (b'{"call_id": "half\n', b"[1]\n", b'{"agent": "nobody"}\n', b'{"call_id": "\xff"}\n', b" \n", b"\n")
    other.write_bytes(b"".join((line(2), *bad, line(3))))
    drain(tmp_path / "j", audit)
    assert idents(audit) == ["c1", "c2", "c3"]


def test_whatever_stands_in_a_line_is_in_the_database_as_it_was(tmp_path: Path, audit: AuditStore) -> None:
    said = "tab\t, newline\n, quote\" and ', back\\slash, \\N, ünï\u2028 🙂"
    kept = {"a": [1, None, "x\ty"], "b": {"deep": said}}
    journal = filled(tmp_path / "j")
    journal.make_room()
    numbers = {"started_at": 1800000000.123456, "duration": 0.25, "bytes_in": 12, "bytes_out": 2**40}
    journal.append(line(1, shown=said, arguments=kept, result="(too long to be kept)", **numbers))
    journal.append(line(2, result=None, rule="nul \0 in it"))
    drain(tmp_path / "j", audit)
    journal.close()
    first, second = audit.calls()
    assert first["shown"] == said
    assert {name: first[name] for name in numbers} == numbers
    assert [json.loads(first[name]) for name in ("arguments", "result")] == [kept, "(too long to be kept)"]
    assert (second["arguments"], second["result"], second["shown"], second["bytes_in"]) == (None, None, "", 0)
    assert second["rule"] in {"nul \0 in it", "nul \ufffd in it"}


def test_a_piece_that_was_taken_is_not_taken_again_and_a_later_one_not_before_it(audit: AuditStore) -> None:
    first, second = line(1), line(2)
    audit.take("s", len(first), second)
    assert idents(audit) == []
    for _ in range(2):
        audit.take("s", 0, first)
    assert audit.place("s") == len(first)
    audit.take("s", len(first), second)
    audit.take("s", 0, first)
    assert idents(audit) == ["c1", "c2"]
    audit.forget("s")
    assert audit.place("s") == 0


DRAINING = """
import sys
from pathlib import Path
from outfitter.basics import Secret
from outfitter.storage import drain, open_audit
state, database = Path(sys.argv[1]), sys.stdin.readline().strip()
store = open_audit(state, Secret(database) if database else None)
store.last()
print("begins", flush=True)
drain(state / "j", store, lambda: print("piece", flush=True) is not None)
"""


@pytest.mark.promise("GW-AUDIT-ONCE")
def test_a_process_that_is_killed_while_it_fills_the_database_leaves_nothing_out_and_nothing_twice(
    tmp_path: Path, database: str, audit: AuditStore
) -> None:
    filled(tmp_path / "j", *range(40_000)).close()
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", DRAINING, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{database}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "begins\n"
            process.stdout.readline()
            os.kill(process.pid, signal.SIGKILL)
    drain(tmp_path / "j", audit)
    assert idents(audit) == [f"c{number}" for number in range(40_000)]


@pytest.mark.promise("RECORD-KILL")
def test_what_was_written_survives_kill_9_of_the_process(tmp_path: Path, audit: AuditStore) -> None:
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
    drain(tmp_path / "j", audit)
    found = idents(audit)
    assert len(found) == len(set(found))
    assert {f"c{number}" for number in answered} <= set(found)
    assert list((tmp_path / "j").iterdir()) == [], "nobody writes there any more"


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


def test_two_journals_have_no_segment_of_the_same_name(tmp_path: Path) -> None:
    journals = [filled(tmp_path / str(number), number) for number in range(50)]
    assert len({path.name for path in tmp_path.glob("*/*.calls")}) == 50
    for journal in journals:
        journal.close()


def test_calls_are_found_by_agent_server_tool_and_outcome(tmp_path: Path, audit: AuditStore) -> None:
    journal = filled(tmp_path / "j", 1)
    journal.append(line(2, server="s", tool="t", shown="s_t"))
    journal.append(line(3, agent="b", outcome="denied", shown="s_t"))
    drain(tmp_path / "j", audit)
    journal.close()

    def found(**wanted: str) -> list[str]:
        return [call["call_id"] for call in audit.calls(wanted=wanted)]

    assert found(agent="b") == ["c3"]
    assert found(server="s") == found(tool="t") == ["c2"]
    assert found(tool="s_t") == ["c2", "c3"]
    assert found(outcome="denied", agent="b") == ["c3"]
    assert found(outcome="denied", agent="a") == []


@pytest.mark.promise("GW-AUDIT-DAYS")
def test_old_calls_go_in_small_pieces_the_oldest_first_and_numbers_are_not_used_again(audit: AuditStore) -> None:
    audit.take("s", 0, b"".join(line(number, started_at=number, server="s", duration=0.5) for number in range(1, 11)))
    assert audit.since(9.0) == [("s", "done", 0.5)] * 2
    assert [call["call_id"] for call in audit.calls(1, 2, {"since": "8.5", "server": "s"})] == ["c9", "c10"]
    assert audit.calls(wanted={"since": "11.0"}) == []
    assert audit.timings({"since": "9.0", "until": "10.0", "server": "s"}) == [(9.0, 0.5, "done", "a", "s")]
    assert [began for began, *_ in audit.timings(limit=2)] == [10.0, 9.0]
    assert audit.timings({"decision": "deny"}) == audit.timings({"run": "r"}) == []
    newest = [call["call_id"] for call in audit.calls(0, 2, {"server": "s"}, newest_first=True)]
    assert newest == [call["call_id"] for call in audit.calls(wanted={"server": "s"})][::-1][:2]
    last = audit.calls(0, 2, newest_first=True)[-1]["seq"]
    assert [call["seq"] for call in audit.calls(last, 2, newest_first=True)] == [last - 1, last - 2]
    assert [audit.remove_before(8.0, 3) for _ in range(4)] == [3, 3, 1, 0]
    assert idents(audit) == ["c8", "c9", "c10"]
    assert audit.remove_before(100.0) == 3
    audit.take("t", 0, line(11))
    assert [call["seq"] for call in audit.calls()] == [11]


def test_whoever_follows_the_calls_of_two_gateways_misses_none(
    tmp_path: Path, database: str, audit: AuditStore
) -> None:
    def work(name: str, first: int) -> None:
        filled(tmp_path / name, *range(first, first + 8000)).close()
        store = open_audit(tmp_path, Secret(database) if database else None)
        drain(tmp_path / name, store)
        store.close()

    audit.last()
    gateways = [threading.Thread(target=work, args=(f"j{number}", number * 8000)) for number in range(2)]
    for gateway in gateways:
        gateway.start()
    seen: list[str] = []
    place, is_last = 0, False
    while not is_last:
        is_last = not any(gateway.is_alive() for gateway in gateways)
        for call in audit.calls(place, limit=100_000):
            seen.append(call["call_id"])
            place = call["seq"]
    assert len(seen) == len(set(seen)) == 16_000
