"""Typed slices: what is in them, which events change them, what stays and what is restored."""

from __future__ import annotations

import gc
from dataclasses import FrozenInstanceError
from typing import cast

import pytest

from outfitter.calls import ToolInvoked
from outfitter.errors import Conflict
from outfitter.session import (
    InProcessDispatcher,
    InProcessEventBus,
    Session,
    SlicePolicy,
    append_all,
    replace_latest,
    upsert_by,
)
from tests.session.values import Count, Note, Noted, NotedTwice

FAILS = "a handler of Noted failed"


def _texts(session: Session) -> list[str]:
    return [note.text for note in session[Note].all()]


def _noted(values: tuple[Note, ...], event: Noted) -> tuple[Note, ...]:
    return (*values, Note(event.text))


@pytest.mark.promise("SESSION-SLICES")
def test_a_slice_gives_all_the_latest_and_those_that_match() -> None:
    session = Session()
    assert session[Note].latest() is None
    session[Note].seed([Note("a"), Note("b")])
    session[Note].append(Note("c"))
    assert _texts(session) == ["a", "b", "c"]
    assert session[Note].latest() == Note("c")
    assert session[Note].where(lambda note: note.text > "a") == (Note("b"), Note("c"))
    session[Note].seed(Note("only"))
    session[Note].update(lambda notes: [*notes, Note("more")])
    assert _texts(session) == ["only", "more"]
    session[Note].clear()
    assert _texts(session) == []


def test_slices_of_different_types_do_not_mix() -> None:
    session = Session()
    session[Note].append(Note("a"))
    session[Count].append(Count(1))
    assert (session[Note].all(), session[Count].all()) == ((Note("a"),), (Count(1),))


@pytest.mark.promise("SESSION-SLICES")
def test_reducers_make_new_values_of_events_and_of_events_below_their_type() -> None:
    session = Session()
    session[Note].register(Noted, _noted)
    session[Count].register(Noted, lambda counts, _: (Count(len(counts) + 1),))
    assert session.dispatch(Noted("a")).ok
    session.dispatch(NotedTwice("b"))
    assert _texts(session) == ["a", "b"]
    assert session[Count].latest() == Count(2)


def test_the_common_reducers_keep_all_the_newest_or_one_by_key() -> None:
    session = Session()
    session[Noted].register(Noted, append_all)
    session[Note].register(Noted, lambda notes, event: replace_latest(notes, Note(event.text)))
    by_length = upsert_by(lambda note: len(note.text))
    session[Count].register(Noted, lambda _, event: (Count(len(by_length((Note("x"),), Note(event.text)))),))
    for text in ("a", "b"):
        session.dispatch(Noted(text))
    assert [event.text for event in session[Noted].all()] == ["a", "b"]
    assert _texts(session) == ["b"]
    assert by_length((Note("a"), Note("bb")), Note("c")) == (Note("c"), Note("bb"))
    assert session[Count].all() == (Count(1),)


def test_a_reducer_that_raises_changes_nothing_and_silences_no_other(caplog: pytest.LogCaptureFixture) -> None:
    session = Session()
    session[Count].seed(Count(1))
    session[Count].register(Noted, lambda _, event: (Count(int(event.text)),))
    session[Note].register(Noted, _noted)
    result = session.dispatch(Noted("no number"))
    assert not result.ok
    assert isinstance(result.errors[0], ValueError)
    assert (session[Count].all(), _texts(session)) == ((Count(1),), ["no number"])
    assert FAILS in caplog.text


def test_several_reducers_that_raise_are_all_told() -> None:
    session = Session()
    session[Note].register(Noted, lambda notes, _: (notes[0],))
    session[Count].register(Noted, lambda counts, _: (counts[0],))
    (error,) = session.dispatch(Noted("a")).errors
    assert isinstance(error, ExceptionGroup)
    assert "2 sub-exceptions" in str(cast("Exception", error))


def test_an_event_of_another_session_is_not_taken() -> None:
    dispatcher = InProcessDispatcher()
    first, second = Session(dispatcher), Session(dispatcher)
    for session in (first, second):
        session[Note].register(Noted, _noted)
    dispatcher.dispatch(Noted("first's", first.session_id))
    dispatcher.dispatch(Noted("everyone's"))
    assert _texts(first) == ["first's", "everyone's"]
    assert _texts(second) == ["everyone's"]


@pytest.mark.promise("SESSION-SLICES")
def test_a_dispatcher_may_be_called_a_bus() -> None:
    bus = InProcessEventBus()
    assert Session(bus=bus).dispatcher is bus
    with pytest.raises(Conflict, match="give one of them"):
        Session(bus, bus=bus)


def test_handlers_hear_in_the_order_they_subscribed_after_the_sessions_own_reducers() -> None:
    session = Session()
    session[Note].register(Noted, _noted)
    heard: list[object] = []
    session.dispatcher.subscribe(Noted, lambda _: heard.append(("noted", len(session[Note].all()))))
    session.dispatcher.subscribe(object, lambda _: heard.append("object"))
    session.dispatcher.subscribe(NotedTwice, lambda _: heard.append("twice"))
    result = session.dispatch(NotedTwice("a"))
    assert heard == [("noted", 1), "object", "twice"]
    assert result.handled == 4


def test_a_handler_that_fails_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    dispatcher = InProcessDispatcher()
    heard: list[Noted] = []

    def fail(_event: Noted) -> None:
        raise RuntimeError("no")

    dispatcher.subscribe(Noted, fail)
    dispatcher.subscribe(Noted, heard.append)
    assert len(dispatcher.dispatch(Noted("a")).errors) == 1
    assert heard == [Noted("a")]
    assert FAILS in caplog.text
    assert dispatcher.unsubscribe(Noted, fail)
    assert not dispatcher.unsubscribe(Noted, fail)
    assert dispatcher.dispatch(Noted("b")).ok


def test_a_dispatcher_does_not_keep_a_session_alive() -> None:
    dispatcher = InProcessDispatcher()
    session = Session(dispatcher)
    session[Note].append(Note("a"))
    del session
    gc.collect()
    assert dispatcher.dispatch(Noted("a")).handled == 1
    assert dispatcher.dispatch(Noted("b")).handled == 0


@pytest.mark.promise("SESSION-SNAPSHOT")
def test_a_snapshot_does_not_change_and_restores_state_but_not_logs() -> None:
    session = Session()
    session[Noted].keep_as(SlicePolicy.LOG)
    session[Note].append(Note("before"))
    session.dispatch(Noted("logged before"))
    snapshot = session.snapshot()
    session[Note].append(Note("after"))
    session[Count].append(Count(1))
    session.dispatch(Noted("logged after"))
    assert snapshot.slices[Note] == (Note("before"),)
    with pytest.raises(TypeError):
        cast("dict[type, object]", snapshot.slices)[Note] = ()
    with pytest.raises(FrozenInstanceError):
        setattr(snapshot, "session_" + "id", "x")
    session.restore(snapshot)
    assert _texts(session) == ["before"]
    assert session[Count].all() == ()
    assert len(session[Noted].all()) == 2


def test_a_log_takes_its_own_events_and_a_reducer_for_it_takes_their_place() -> None:
    session = Session()
    session[Noted].keep_as(SlicePolicy.LOG)
    session.dispatch(Noted("a"))
    assert len(session[Noted].all()) == 1
    session[Noted].register(Noted, lambda log, event: (*log, event, event))
    session.dispatch(Noted("b"))
    assert [event.text for event in session[Noted].all()] == ["a", "b", "b"]


def test_how_a_slice_is_kept_is_said_before_it_holds_anything() -> None:
    session = Session()
    session[Note].keep_as(SlicePolicy.STATE)
    session[Note].append(Note("a"))
    with pytest.raises(Conflict, match="holds values already"):
        session[Note].keep_as(SlicePolicy.LOG)
    session[Noted].register(Noted, append_all, policy=SlicePolicy.LOG)
    session[Noted].keep_as(SlicePolicy.STATE)
    session.dispatch(Noted("a"))
    assert Noted in session.snapshot().slices


@pytest.mark.promise("SESSION-LOG")
def test_a_log_keeps_its_newest_values_however_long_it_lives() -> None:
    session = Session(log_limit=1000)
    session[Noted].keep_as(SlicePolicy.LOG)
    for number in range(1500):
        session.dispatch(Noted(str(number)))
    texts = [event.text for event in session[Noted].all()]
    assert (len(texts), texts[0], texts[-1]) == (1000, "500", "1499")
    assert session[Noted].latest() == Noted("1499")
    session[Noted].update(lambda log: log[-2:])
    session[Noted].append(Noted("end"))
    assert [event.text for event in session[Noted].all()] == ["1498", "1499", "end"]


def test_a_log_may_keep_nothing() -> None:
    session = Session(log_limit=0)
    session[ToolInvoked].keep_as(SlicePolicy.LOG)
    session[Noted].keep_as(SlicePolicy.LOG)
    session.dispatch(Noted("a"))
    assert session[Noted].all() == ()
