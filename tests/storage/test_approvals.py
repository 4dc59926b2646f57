"""Wishes and what persons say of them, in a file that several processes share."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from outfitter.errors import Conflict, NotFound, StorageUnavailable
from outfitter.policy import Verdict, Wish
from outfitter.storage import ApprovalStore, ApprovalTimes

WISH = Wish("tester", "github", "delete_repo", "d1", "p1", "r1", reason="deletes", arguments={"repo": "shop"})
YES, NO = Verdict(is_yes=True, by="alice", where="command line"), Verdict(is_yes=False, by="bob", where="API")


class Clock:
    """A time that tests move."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Generator[ApprovalStore]:
    made = ApprovalStore(tmp_path / "approvals", ApprovalTimes(valid=60.0, most_waiting=2), clock)
    yield made
    made.close()


def asked(store: ApprovalStore, wish: Wish = WISH) -> str:
    """The id of a wish that waits."""
    found = store.ask(wish, 10.0)
    assert found is not None
    assert found.state == "waiting"
    return found.id


def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals")
    assert store.list() == []
    with pytest.raises(NotFound):
        store.get("x")
    assert not (tmp_path / "approvals").exists()


def test_a_yes_is_used_once_by_the_call_that_waits(store: ApprovalStore) -> None:
    ident = asked(store)
    assert store.look(ident) == "waiting"
    assert store.take(ident).state == "waiting"
    assert store.decide(ident, YES).state == "approved"
    used = store.take(ident)
    assert (used.state, used.verdict) == ("used", YES)
    with pytest.raises(Conflict, match="has been used already"):
        store.take(ident)
    with pytest.raises(Conflict, match="has been used already"):
        store.decide(ident, YES)
    assert asked(store) != ident, "the next equal call needs a yes of its own"


@pytest.mark.promise("G29")
@pytest.mark.parametrize(
    "changed", [{"digest": "d2"}, {"policy": "r2"}, {"pin": "p2"}, {"run": "r"}, {"agent": "lead"}, {"tool": "get"}]
)
def test_a_yes_that_came_late_counts_for_the_equal_call_only(store: ApprovalStore, changed: dict[str, str]) -> None:
    ident = asked(store)
    store.leave(ident)
    store.decide(ident, YES)
    other = store.ask(replace(WISH, **changed), 10.0)
    assert other is not None
    assert (other.state, other.id != ident) == ("waiting", True)
    again = store.ask(WISH, 10.0)
    assert again is not None
    assert (again.state, again.id) == ("used", ident)
    assert asked(store) != ident, "it cannot be used again"


@pytest.mark.promise("G29")
def test_what_is_not_answered_or_not_used_in_time_expires(store: ApprovalStore, clock: Clock) -> None:
    ident = asked(store)
    store.leave(ident)
    clock.now += 59.0
    store.decide(ident, YES)
    clock.now += 60.0
    assert store.get(ident).state == "expired"
    assert store.take(ident).state == "expired"
    with pytest.raises(Conflict, match="has expired"):
        store.decide(ident, YES)
    second = asked(store)
    assert second != ident
    clock.now += 61.0
    assert store.get(second).state == "expired"


def test_a_no_counts_as_long_as_a_yes_would_and_can_be_turned(store: ApprovalStore, clock: Clock) -> None:
    ident = asked(store)
    store.decide(ident, NO)
    again = store.ask(WISH, 10.0)
    assert again is not None
    assert (again.state, again.verdict) == ("denied", NO)
    store.leave(ident)
    assert store.decide(ident, YES).state == "approved"
    used = store.ask(WISH, 10.0)
    assert used is not None
    assert used.state == "used"
    store.decide(asked(store), NO)
    clock.now += 61.0
    asked(store)


def test_an_answer_at_the_client_counts_unless_somebody_was_first(store: ApprovalStore) -> None:
    here = Verdict(is_yes=True, by="tester", where="client")
    found = store.answer(asked(store), here)
    assert (found.state, found.verdict) == ("used", here)
    second = asked(store)
    store.decide(second, NO)
    assert store.answer(second, here).verdict == NO


def test_a_wish_that_was_left_is_not_shown_twice_and_few_may_wait(store: ApprovalStore) -> None:
    first = asked(store)
    store.leave(first)
    assert asked(store) == first
    assert asked(store) != first, "each call that waits has its own"
    assert store.ask(WISH, 10.0) is None
    assert asked(store, replace(WISH, agent="lead"))
    assert len(store.list(["waiting"], agent="tester")) == 2


def test_whoever_asks_and_leaves_fills_no_list(store: ApprovalStore, clock: Clock) -> None:
    for number in range(120):
        clock.now += 0.001
        store.leave(asked(store, replace(WISH, digest=str(number))))
    left = store.list(["waiting"])
    assert (len(left), left[0].digest, left[-1].digest) == (100, "119", "20")


def test_what_waits_for_a_process_that_died_expires_and_a_yes_for_it_stays(store: ApprovalStore) -> None:
    other = ApprovalStore(store.folder, store.times, store.clock)
    waiting, answered = asked(other), asked(other)
    store.decide(answered, YES)
    assert store.get(waiting).state == "waiting"
    other.close()  # as the system does when a process ends
    assert store.get(waiting).state == "expired"
    assert store.get(answered).state == "approved"
    used = store.ask(WISH, 10.0)
    assert used is not None
    assert used.id == answered


_ASKING = """
import sys
from pathlib import Path
from outfitter.policy import Wish
from outfitter.storage import ApprovalStore, ApprovalTimes
store = ApprovalStore(Path(sys.argv[1]), ApprovalTimes(most_waiting=1000))
for _ in range(20):
    print(store.ask(Wish("tester", "github", "delete_repo", "d1", "p1", "r1"), 10.0).state)
"""


@pytest.mark.promise("APPROVAL-ONCE")
def test_a_yes_is_used_once_whichever_process_comes_first(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path, ApprovalTimes(most_waiting=1000))
    idents = [asked(store) for _ in range(3)]
    for ident in idents:
        store.leave(ident)
        store.decide(ident, YES)
    commands = [[sys.executable, "-c", _ASKING, str(tmp_path)] for _ in range(3)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    said = Counter(line for process in running for line in process.communicate(timeout=120)[0].split())
    assert said == {"used": 3, "waiting": 57}
    store.close()


def test_the_file_is_its_owners_and_says_when_it_cannot_be_used(store: ApprovalStore, tmp_path: Path) -> None:
    asked(store, replace(WISH, arguments={"long": "x" * 20_000}))
    assert "too long to be shown" in store.list()[0].arguments
    modes = {
        stat.S_IMODE(file.stat().st_mode) for file in store.folder.iterdir() if not file.name.endswith(("wal", "shm"))
    }
    assert modes == {0o600}
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "approvals.db").write_text("this is no database at all, and long enough to be looked at " * 20)
    with pytest.raises(StorageUnavailable, match="cannot be used"):
        ApprovalStore(broken).list()


DECIDE = """
import sys
from pathlib import Path
from outfitter.policy import Verdict
from outfitter.storage import ApprovalStore
store = ApprovalStore(Path(sys.argv[1]))
(wish,) = store.list()
if sys.argv[2] != "look":
    store.decide(wish.id, Verdict(is_yes=sys.argv[2] == "yes", by="alice", where="command line"))
store.close()
"""


def test_what_others_say_is_seen_however_often_they_open_and_close_the_file(tmp_path: Path) -> None:
    # The last one to close it takes its log away: another must not hold itself for the last, and does when opening
    # the file a second time here has ended our locks.
    store = ApprovalStore(tmp_path / "approvals")
    ident = asked(store)
    for said, state in (("look", "waiting"), ("no", "denied"), ("yes", "approved"), ("no", "denied")):
        assert store.look(ident) in {"waiting", "denied", "approved"}
        subprocess.run([sys.executable, "-c", DECIDE, str(tmp_path / "approvals"), said], check=True)
        assert store.look(ident) == state
    store.close()
