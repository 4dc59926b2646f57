"""The table of what agents have used: exact for many processes, there after any death, never begun anew by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from outfitter.catalog import Budget, Budgets, Measure, Period
from outfitter.errors import NotFound, StorageUnavailable
from outfitter.policy import Meter, Payer, states_of
from outfitter.storage import BudgetBook, LedgerFile, open_ledger

NOW = 1_800_014_400.0
LIMIT = 3000
BUDGETS = Budgets(limits=(Budget(Measure.CALLS, LIMIT, Period.RUN), Budget(Measure.BYTES, 10**12, Period.RUN)))
PAYER = Payer("a", "r")
_HAMMER = f"""
import sys
from pathlib import Path
from outfitter.catalog import Budget, Measure, Period
from outfitter.policy import Meter, Payer
from outfitter.storage import open_ledger

limits = (Budget(Measure.CALLS, {LIMIT}, Period.RUN), Budget(Measure.BYTES, 10**12, Period.RUN))
ledger = open_ledger(Path(sys.argv[1]), keeps=sys.argv[2] == "keeps")
meter = Meter(ledger, Payer("a", "r").counters(limits))
print("ready", flush=True)
sys.stdin.readline()
done = 0
while meter.spend() is None:
    meter.charge(3)
    done += 1
    if done % 100 == 0:
        ledger.breathe()
        print(done, flush=True)
ledger.breathe()
print("end", done, flush=True)
ledger.close()
"""


def hammer(path: Path, how: str = "shares") -> subprocess.Popen[str]:
    """A process that counts calls as fast as it can, until there are none left."""
    command = [sys.executable, "-c", _HAMMER, str(path), how]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def used(ledger: LedgerFile) -> list[int | None]:
    return [state.used for state in states_of(ledger, PAYER, BUDGETS, NOW)]


@pytest.mark.promise("BUD-04")
@pytest.mark.parametrize("first", ["shares", "keeps"])
def test_several_processes_count_every_call_once_and_let_none_too_many_through(tmp_path: Path, first: str) -> None:
    path = tmp_path / "a.ledger"
    crew = [hammer(path, first), hammer(path), hammer(path)]
    for one in crew:
        begin(one)
    ended = [one.communicate(timeout=120)[0].split("end ")[-1] for one in crew]
    ledger = open_ledger(path)
    assert sum(map(int, ended)) == LIMIT
    assert used(ledger) == [LIMIT, 3 * LIMIT]
    ledger.close()


@pytest.mark.promise("BUD-05")
@pytest.mark.parametrize("how", ["shares", "keeps"])
def test_what_was_counted_is_there_when_the_process_is_killed(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.ledger"
    process = hammer(path, how)
    begin(process)
    assert process.stdout is not None
    said = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    said = max([said, *(int(line) for line in process.communicate(timeout=60)[0].split() if line.isdigit())])
    ledger = open_ledger(path)
    calls, size = used(ledger)
    assert said <= (calls or 0) <= LIMIT
    assert (calls or 0) * 3 - 3 <= (size or 0) <= (calls or 0) * 3, "at most the call under way is not charged"
    other = Meter(ledger, Payer("a", "another").counters(BUDGETS.limits))
    assert other.spend() is None, "the lock went with the process"
    ledger.close()


def test_one_that_keeps_the_lock_lets_another_have_it_when_it_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    keeper, other = open_ledger(path, keeps=True), open_ledger(path)
    assert Meter(keeper, PAYER.counters(BUDGETS.limits)).spend() is None
    assert keeper.is_held
    waiting = threading.Thread(target=Meter(other, PAYER.counters(BUDGETS.limits)).spend)
    waiting.start()
    while waiting.is_alive():
        keeper.breathe()
    waiting.join()
    assert not keeper.is_held
    assert used(keeper) == [2, 0]
    keeper.close()
    other.close()


@pytest.mark.promise("BUD-06")
def test_a_damaged_file_is_named_and_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    open_ledger(path, slots=64).close()
    whole = path.read_bytes()
    negative = bytearray(whole)
    negative[64 + 24 : 64 + 32] = (-1).to_bytes(8, sys.byteorder, signed=True)
    for damaged in (b"", whole[:100], whole[:-64], b"x" * len(whole), bytes(negative)):
        path.write_bytes(damaged)
        with pytest.raises(StorageUnavailable, match=r"a\.ledger: .*cannot be read"):
            open_ledger(path)
        assert path.read_bytes() == damaged


def test_a_full_table_says_so_and_room_comes_back_when_counts_are_over(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "a.ledger", slots=8)
    for number in range(7):
        ledger.place(bytes([2 * number + 1]) * 16, NOW, NOW + 60)
    with pytest.raises(StorageUnavailable, match="full"):
        ledger.place(b"x" * 16, NOW, NOW + 60)
    assert ledger.find(b"x" * 16) is None
    place = ledger.place(b"x" * 16, NOW + 62, NOW + 120)
    assert ledger.find(b"x" * 16) == place
    ledger.close()


def test_keys_keep_their_places_whatever_comes_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    ledger = open_ledger(path, slots=256)
    keys = [os.urandom(16) for _ in range(200)]
    for index, key in enumerate(keys):
        ledger.words[ledger.place(key, NOW, NOW + (1e6 if index % 2 else -1)) + 3] = index
    for _ in range(50):
        ledger.place(os.urandom(16), NOW, NOW + 1e6)
    ledger.close()
    ledger = open_ledger(path)
    for index, key in enumerate(keys):
        place = ledger.find(key)
        if index % 2:
            assert place is not None
            assert ledger.words[place + 3] == index
    ledger.close()


@pytest.mark.promise("BUD-07")
def test_a_reset_is_written_down_with_who_did_it_and_what_was_used(tmp_path: Path) -> None:
    book = BudgetBook(open_ledger(tmp_path / "a.ledger"), tmp_path / "a.resets", lambda: NOW)
    Meter(book.ledger, PAYER.counters(BUDGETS.limits), clock=book.clock).spend()
    with pytest.raises(NotFound, match="no such budget"):
        book.reset(PAYER, BUDGETS, by="ann", budget="calls_per_day")
    with pytest.raises(NotFound):
        book.reset(Payer("a"), BUDGETS, by="ann", budget="calls_per_run")
    (before,) = book.reset(PAYER, BUDGETS, by="ann", budget="calls_per_run")
    assert (before.used, used(book.ledger)) == (1, [0, 0])
    with book.log.open("ab") as log:
        log.write(b'{"at":"half a li')
    (told,) = book.resets("a")
    assert (told.by, told.agent, told.run, told.budget, told.used) == ("ann", "a", "r", "calls_per_run", 1)
    assert book.resets("b") == ()
    book.close()
