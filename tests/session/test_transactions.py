"""Transactions: each undoes its own changes, exactly once, whoever else is at work."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter

import pytest

from outfitter.errors import Conflict
from outfitter.session import Session, SlicePolicy
from tests.session.values import Count, Note, Noted


def _numbers(session: Session) -> list[int]:
    return [count.number for count in session[Count].all()]


def _add(session: Session, number: int) -> None:
    session[Count].append(Count(number))


class Stop(Exception):
    """What ends a block in a test."""


def _add_and_stop(session: Session) -> None:
    with session.transaction():
        _add(session, 3)
        session[Note].append(Note("new slice"))
        raise Stop


@pytest.mark.promise("SESSION-TRANSACTION")
def test_a_block_that_raises_is_undone_and_one_that_ends_is_kept() -> None:
    session = Session()
    _add(session, 1)
    with session.transaction():
        _add(session, 2)
    with pytest.raises(Stop):
        _add_and_stop(session)
    assert _numbers(session) == [1, 2]
    assert session[Note].all() == ()


@pytest.mark.promise("SESSION-TRANSACTION")
def test_logs_stay_when_state_is_undone() -> None:
    session = Session()
    session[Noted].keep_as(SlicePolicy.LOG)
    session[Count].register(Noted, lambda counts, _: (*counts, Count(0)))
    with session.transaction() as transaction:
        session.dispatch(Noted("a"))
        transaction.rollback()
    assert (len(session[Noted].all()), _numbers(session)) == (1, [])


def test_a_rolled_back_transaction_refuses_changes_and_is_not_undone_twice() -> None:
    session = Session()
    with session.transaction() as transaction:
        _add(session, 1)
        transaction.rollback()
        with pytest.raises(Conflict, match="was undone"):
            _add(session, 2)
        with pytest.raises(Conflict), session.transaction():
            pass
        transaction.rollback()
    _add(session, 3)
    transaction.rollback()
    assert _numbers(session) == [3]


def test_a_transaction_has_one_block() -> None:
    session = Session()
    with session.transaction() as transaction:
        _add(session, 1)
        with pytest.raises(Conflict, match="one block"), transaction:
            pass
    assert _numbers(session) == [1]


def test_an_inner_block_belongs_to_the_outer_one() -> None:
    session = Session()
    with session.transaction() as outer:
        _add(session, 1)
        with session.transaction():
            _add(session, 2)
        with session.transaction() as inner:
            _add(session, 3)
            inner.rollback()
        assert _numbers(session) == [1, 2]
        outer.rollback()
    assert _numbers(session) == []


def test_a_transaction_of_one_session_says_nothing_about_another() -> None:
    first, second = Session(), Session()
    with first.transaction() as outer, second.transaction():
        _add(first, 1)
        _add(second, 2)
        outer.rollback()
    assert (_numbers(first), _numbers(second)) == ([], [2])


def test_restoring_inside_a_transaction_is_undone_with_it() -> None:
    session = Session()
    empty = session.snapshot()
    _add(session, 1)
    with session.transaction() as transaction:
        session.restore(empty)
        assert _numbers(session) == []
        transaction.rollback()
    assert _numbers(session) == [1]


def test_what_a_kept_transaction_started_goes_on_for_whoever_is_around_it() -> None:
    session = Session()
    with session.transaction() as outer:
        with session.transaction():
            late = contextvars.copy_context()
        late.run(_add, session, 1)
        assert _numbers(session) == [1]
        outer.rollback()
    assert _numbers(session) == []
    with pytest.raises(Conflict):
        late.run(_add, session, 2)
    with session.transaction():
        free = contextvars.copy_context()
    free.run(_add, session, 3)
    assert _numbers(session) == [3]


def test_an_inner_block_that_outlives_its_undone_outer_one_keeps_nothing() -> None:
    session = Session()
    with session.transaction() as outer:
        inner = session.transaction()
        elsewhere = contextvars.copy_context()
        elsewhere.run(inner.__enter__)
        elsewhere.run(_add, session, 1)
        outer.rollback()
    assert _numbers(session) == []
    with pytest.raises(Conflict):
        elsewhere.run(_add, session, 2)
    elsewhere.run(inner.__exit__, None)
    assert _numbers(session) == []


def test_a_change_that_needs_what_was_undone_is_dropped_and_told(caplog: pytest.LogCaptureFixture) -> None:
    session = Session()
    with session.transaction() as transaction:
        _add(session, 1)
        contextvars.Context().run(session[Count].update, lambda counts: (Count(counts[0].number * 10),))
        contextvars.Context().run(_add, session, 5)
        transaction.rollback()
    assert _numbers(session) == [5]
    assert "it is dropped" in caplog.text


@pytest.mark.promise("SESSION-TRANSACTION")
def test_threads_that_fail_undo_only_their_own_changes() -> None:
    session = Session()
    barrier = threading.Barrier(8)

    def work(worker: int) -> None:
        barrier.wait()
        for step in range(25):
            with session.transaction() as transaction:
                _add(session, worker)
                _add(session, worker)
                if (worker + step) % 2:
                    transaction.rollback()

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = {worker: 2 * sum((worker + step) % 2 == 0 for step in range(25)) for worker in range(8)}
    assert Counter(_numbers(session)) == kept


@pytest.mark.anyio
@pytest.mark.promise("SESSION-TRANSACTION")
async def test_tasks_that_fail_undo_only_their_own_changes() -> None:
    session = Session()
    gate = asyncio.Event()

    async def work(worker: int) -> None:
        with session.transaction():
            _add(session, worker)
            await gate.wait()
            _add(session, worker)
            if worker % 3 == 0:
                raise Stop

    tasks = [asyncio.create_task(work(worker)) for worker in range(9)]
    await asyncio.sleep(0)
    gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(result, Stop) for result in results) == 3
    assert Counter(_numbers(session)) == {worker: 2 for worker in range(9) if worker % 3}
