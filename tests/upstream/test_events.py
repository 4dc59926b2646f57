"""A stream of events means the same in whatever pieces it arrives."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.errors import ProtocolViolation
from outfitter.upstream import EventParser, ServerEvent


def parse(*pieces: bytes, limit: int = 1000) -> list[ServerEvent]:
    parser = EventParser(limit)
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [("message", b"a", "")]),
        (b"data:a\r\n\r\n", [("message", b"a", "")]),
        (b"data:  a\r\r", [("message", b" a", "")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("message", b"a", "")]),
        (b"data: a\ndata\ndata: b\n\n", [("message", b"a\n\nb", "")]),
        (b": ping\n\ndata: a\n\n", [("message", b"a", "")]),
        (b"event: endpoint\ndata: /x\n\ndata: y\n\n", [("endpoint", b"/x", ""), ("message", b"y", "")]),
        (b"id: 1\ndata:\n\ndata: a\n\n", [("message", b"", "1"), ("message", b"a", "1")]),
        (b"id: 1\n\ndata: a\n\nid\ndata: b\n\n", [("message", b"a", "1"), ("message", b"b", "")]),
        (b"id: a\0b\ndata: a\n\n", [("message", b"a", "")]),
        (b"data: never ended\n", []),
        (b"event: lonely\n\n", []),
        (b"unknown: x\n data: x\ndata: a\n\n", [("message", b"a", "")]),
        (b"data: \xff\xfe\n\n", [("message", b"\xff\xfe", "")]),
        (b"data: a\x0b\x0c\xe2\x80\xa8b\n\n", [("message", b"a\x0b\x0c\xe2\x80\xa8b", "")]),
    ],
)
def test_the_rules_of_the_standard_hold(stream: bytes, expected: list[tuple[str, bytes, str]]) -> None:
    assert [(event.type, event.data, event.id) for event in parse(stream)] == expected
    assert parse(*(bytes([byte]) for byte in stream)) == parse(stream)


@pytest.mark.parametrize(
    ("stream", "retry"),
    [(b"retry: 250\n", 0.25), (b"retry: x\n", None), (b"retry: -1\n", None), (b"retry: 9999999999\n", None)],
)
def test_the_time_to_wait_is_read(stream: bytes, retry: float | None) -> None:
    parser = EventParser()
    assert list(parser.feed(stream)) == []
    assert parser.retry == retry


def test_an_id_counts_once_its_event_is_whole() -> None:
    parser = EventParser()
    assert list(parser.feed(b"id: 7\ndata: x\n")) == []
    assert parser.last_id == ""
    assert len(list(parser.feed(b"\n"))) == 1
    assert parser.last_id == "7"


@pytest.mark.promise("F09")
@pytest.mark.parametrize("stream", [b"data: " + b"x" * 1100, b"data: x\n" * 600, b": " + b"x" * 1100])
def test_an_event_that_is_too_large_is_refused(stream: bytes) -> None:
    for pieces in ((stream,), tuple(bytes([byte]) for byte in stream)):
        with pytest.raises(ProtocolViolation):
            parse(*pieces, b"\n\n")


def test_comments_and_small_events_may_go_on_for_ever() -> None:
    assert len(parse(b": ping\n" * 1000, b"data: x\n\n" * 1000)) == 1000


LINES = st.one_of(
    st.sampled_from(
        [b"", b"data", b"data: a", b"data:b", b"id: 1", b"id", b"retry: 5", b"event: x", b": c", b"\xef\xbb\xbf"]
    ),
    st.binary(max_size=12),
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=30).map(
    lambda lines: b"".join(text + end for text, end in lines)
)


def _outcome(pieces: list[bytes], limit: int) -> tuple[list[ServerEvent], bool, float | None]:
    parser, events = EventParser(limit), list[ServerEvent]()
    try:
        for piece in pieces:
            events.extend(parser.feed(piece))
    except ProtocolViolation:
        return [], True, None
    return events, False, parser.retry


@pytest.mark.promise("EVENTS-CHUNKING")
@given(stream=STREAMS, cuts=st.lists(st.integers(0, 400), max_size=40), limit=st.sampled_from([8, 20, 1000]))
def test_the_pieces_do_not_matter(stream: bytes, cuts: list[int], limit: int) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert _outcome(pieces, limit) == _outcome([stream], limit)
