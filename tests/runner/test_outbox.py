"""Events on their way: in order, each once, over outages, deaths and half-written lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.errors import Conflict, Invalid, TooManyEvents, Unavailable
from outfitter.runner import Outbox, event_data, harmless, result_value

pytestmark = pytest.mark.anyio


@dataclass(slots=True)
class Post:
    """Takes events as the coordinator does, and is away now and then."""

    taken: list[Any] = field(default_factory=list[Any])
    away: int = 0
    lost_answers: int = 0
    """How often events are taken, and the sender does not hear of it."""
    attempt: int = 1
    largest: int = 0
    most: int | None = None
    """How many are kept."""
    refused: tuple[int, ...] = ()
    """The numbers of events that are no good."""

    async def send(self, run_id: str, attempt: int, first: int, events: Sequence[msgspec.Raw]) -> None:
        assert run_id == "run-1"
        if self.away:
            self.away -= 1
            raise Unavailable("away")
        if attempt != self.attempt or first > len(self.taken) + 1:
            raise Conflict("stale, or a gap")
        if self.most is not None and first - 1 + len(events) > self.most:
            raise TooManyEvents("enough was told")
        body = msgspec.json.encode(events)
        if any(event["data"].get("n") in self.refused for event in msgspec.json.decode(body)):
            raise Invalid("one of them is no good")
        self.largest = max(self.largest, len(body))
        self.taken += msgspec.json.decode(body)[len(self.taken) + 1 - first :]
        if self.lost_answers:
            self.lost_answers -= 1
            raise Unavailable("the answer got lost")

    @property
    def numbers(self) -> list[int]:
        return [event["data"]["n"] for event in self.taken]


def put_all(box: Outbox, numbers: range) -> None:
    for number in numbers:
        box.put("tick", {"n": number})


@pytest.mark.promise("F41")
async def test_events_survive_outages_and_lost_answers_in_order_and_once(tmp_path: Path) -> None:
    post, box = Post(away=3, lost_answers=2), Outbox.open(tmp_path / "a.events", "run-1")
    async with anyio.create_task_group() as group:
        group.start_soon(box.send_on, post, 1)
        for start in range(0, 600, 100):
            put_all(box, range(start, start + 100))
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(60):
            while not box.is_sent:  # noqa: ASYNC110 - nobody tells of it
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    assert post.numbers == list(range(600))
    box.close()
    Outbox.remove(tmp_path / "a.events")
    assert not any(Outbox.exists(tmp_path / name) for name in ("a.events", "a.sent"))
    Outbox.remove(tmp_path / "a.events")


@pytest.mark.promise("F41")
async def test_a_file_that_a_killed_runner_left_is_sent_on_from_where_it_was(tmp_path: Path) -> None:
    path, post = tmp_path / "a.events", Post()
    first = Outbox.open(path, "run-1")
    put_all(first, range(5))
    await first.drain(post, 1)
    put_all(first, range(5, 9))
    first.close()
    with path.open("ab") as file:
        file.write(b'{"type": "tick", "at": "2026')  # a line that was cut off
    post.attempt = 2
    again = Outbox.open(path, "run-1")
    put_all(again, range(9, 12))
    await again.drain(post, 2)
    assert post.numbers == list(range(12))
    path.with_suffix(".sent").unlink()
    forgotten = Outbox.open(path, "run-1")
    await forgotten.drain(post, 2)
    assert post.numbers == list(range(12)), "what is sent again is not taken again"
    forgotten.close()
    again.close()


@pytest.mark.promise("F41")
async def test_an_event_that_is_refused_leaves_its_number_to_one_that_says_so(tmp_path: Path) -> None:
    post, box = Post(refused=(3, 7), away=1, lost_answers=2), Outbox.open(tmp_path / "a.events", "run-1")
    put_all(box, range(10))
    await box.drain(post, 1)
    assert [event["data"].get("n") for event in post.taken] == [0, 1, 2, None, 4, 5, 6, None, 8, 9]
    refused = post.taken[3]
    assert (refused["type"], "one of them is no good" in refused["data"]["why"]) == ("outfitter.event_refused", True)
    assert box.is_sent
    box.close()


@pytest.mark.parametrize("sent", [0, 1, 1234, 2999, 3000, 5000])
async def test_a_large_file_is_taken_up_from_the_event_that_was_noted(tmp_path: Path, sent: int) -> None:
    path, post = tmp_path / "a.events", Post()
    box = Outbox.open(path, "run-1")
    for number in range(3000):
        box.put("tick", {"n": number, "text": "x" * 1000})
    box.close()
    path.with_suffix(".sent").write_text(str(sent + 1))
    post.taken = [{"data": {"n": number}} for number in range(sent)]
    again = Outbox.open(path, "run-1")
    await again.drain(post, 1)
    assert post.numbers == list(range(max(3000, sent)))
    again.close()


@pytest.mark.parametrize("head", [b"", b'{"first":1}', b"nonsense\n"])
async def test_a_file_whose_beginning_was_cut_off_is_begun_again(tmp_path: Path, head: bytes) -> None:
    path, post = tmp_path / "a.events", Post()
    path.write_bytes(head)
    box = Outbox.open(path, "run-1")
    put_all(box, range(3))
    await box.drain(post, 1)
    assert post.numbers == [0, 1, 2]
    box.close()


async def test_a_run_that_was_taken_over_without_the_file_counts_on(tmp_path: Path) -> None:
    post = Post(taken=[{"data": {"n": 0}}, {"data": {"n": 1}}])
    box = Outbox.open(tmp_path / "a.events", "run-1", 3)
    put_all(box, range(2, 5))
    await box.drain(post, 1)
    assert post.numbers == [0, 1, 2, 3, 4]
    box.close()


async def test_whoever_was_given_up_for_dead_sends_no_more(tmp_path: Path) -> None:
    box = Outbox.open(tmp_path / "a.events", "run-1")
    put_all(box, range(3))
    with pytest.raises(Conflict):
        await box.send_on(Post(attempt=2), 1)
    box.close()


@pytest.mark.promise("N11")
async def test_large_events_are_cut_and_sent_in_requests_of_a_bearable_size(tmp_path: Path) -> None:
    post, box = Post(), Outbox.open(tmp_path / "a.events", "run-1")
    for number in range(60):
        box.put("big", {"n": number, "texts": ["x" * 50_000] * 4})
    await box.drain(post, 1)
    assert len(post.taken) == 60
    assert post.largest < 1024 * 1024
    box.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
)


@pytest.mark.promise("N11")
@given(value=JSON)
def test_whatever_a_program_says_can_be_kept(value: object) -> None:
    kept = event_data({"value": value})
    assert len(msgspec.json.encode(kept)) <= 64 * 1024
    assert len(msgspec.json.encode(result_value(value))) <= 1024 * 1024 + 4096
    text = msgspec.json.encode(kept).decode()
    assert "\\u0000" not in text
    assert "\\u001b" not in text


@pytest.mark.promise("N11")
def test_what_a_terminal_would_obey_is_written_out_and_other_writing_stays() -> None:
    assert harmless("\x1b[31mred\x07\r\n\x00\ud800") == "\\x1b[31mred\\x07\n\\x00\\ud800"
    assert harmless("naïve 日本 👩‍🚀 \u202egnp.exe") == "naïve 日本 👩‍🚀 \\u202egnp.exe"
    assert len(msgspec.json.encode(result_value("é" * 3_000_000))) <= 1024 * 1024 + 200
    assert len(msgspec.json.encode(result_value({"many": ["x" * 100] * 50_000}))) <= 1024 * 1024 + 200
    assert len(msgspec.json.encode(result_value("\\" * 1_000_000))) <= 1024 * 1024 + 200


async def test_a_run_that_has_told_enough_goes_on_unheard(tmp_path: Path) -> None:
    box, post = Outbox.open(tmp_path / "run-1.events", "run-1"), Post(most=10)
    put_all(box, range(8))
    await box.drain(post, 1)
    put_all(box, range(8, 20))
    await box.drain(post, 1)
    put_all(box, range(20, 30))
    await box.drain(post, 1)
    assert box.is_sent
    assert post.numbers == list(range(8))
    box.close()
