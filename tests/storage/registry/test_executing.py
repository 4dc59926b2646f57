"""Runs while they are executed, at both databases: begun by one, fenced, told of once, lost once, all or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from outfitter.errors import AlreadyExists, Conflict, NotFound, TooManyEvents
from outfitter.storage import Database, Ending, RunEvent, RunnerRecord, RunRecord, Speaker, Taking, Telling, TokenRecord
from tests.storage.registry.places import Place
from tests.storage.registry.test_records import NOW, run, session

pytestmark = pytest.mark.anyio
LATER = "2999-01-01T00:00:00.000000Z"


def tell(record: RunRecord) -> tuple[str, str, dict[str, object]]:
    return f"run.{record.state}", f"runs/{record.id}", {"attempt": record.attempt}


def tell_events(record: RunRecord, new: Sequence[RunEvent]) -> tuple[str, str, dict[str, object]]:
    return "run.event", f"runs/{record.id}", {"seq": new[-1].seq, "count": len(new)}


def token(name: str, run_id: str = "r1") -> TokenRecord:
    return TokenRecord(name, f"digest-{name}", "agent", NOW, "ann", agent="tester", run_id=run_id)


def taking(runner: str, name: str = "") -> Taking:
    return Taking(runner, token(name or f"t-{runner}"), {"a": "b"})


def events(*types: str) -> list[RunEvent]:
    return [RunEvent(name, NOW, {"text": f"{name}\0ü"}) for name in types]


async def kinds(base: Database) -> list[str]:
    return [event.kind for event in await base.events.after(0)]


async def test_of_many_who_begin_a_run_one_does_and_it_begins_again_in_another_attempt(place: Place) -> None:
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        tries = [base.executing.begin("r1", taking(f"n{number}"), tell) for number in range(6)]
        answers = await asyncio.gather(*tries, return_exceptions=True)
        (begun,) = [answer for answer in answers if isinstance(answer, RunRecord)]
        assert sum(isinstance(answer, Conflict) for answer in answers) == 5
        assert (begun.state, begun.attempt, begun.given) == ("running", 1, {"a": "b"})
        assert begun.owner is not None
        again = await base.executing.begin("r1", taking(begun.owner, "second"), tell)
        assert (again.attempt, again.started_at) == (2, begun.started_at)
        valid = [one.id for one in await base.tokens.all() if one.revoked_at is None]
        assert valid == ["second"]
        assert await kinds(base) == ["run.running", "run.running"]
        with pytest.raises(NotFound):
            await base.executing.begin("r9", taking("n1", "third"), tell)


async def test_a_begin_that_fails_leaves_nothing_behind(place: Place) -> None:
    async with place.open() as base:
        before = await base.runs.add(run(1), session(1))
        await base.tokens.add(token("taken", "other"))
        with pytest.raises(AlreadyExists):
            await base.executing.begin("r1", taking("n1", "taken"), tell)
        assert await base.runs.get("r1") == before
        assert await base.runners.all() == ()
        assert await kinds(base) == []


async def test_what_a_run_tells_is_stored_once_and_in_order_whoever_sends_it(place: Place) -> None:
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        await base.executing.begin("r1", taking("n1"), tell)
        sent = [base.executing.append("r1", Telling(1, 1, events("a", "b")), tell_events) for _ in range(4)]
        stored = await asyncio.gather(*sent)
        assert sorted(len(new) for new in stored) == [0, 0, 0, 2]
        await base.executing.append("r1", Telling(1, 2, events("b", "c")), tell_events)
        with pytest.raises(Conflict, match="4 to 5 are missing"):
            await base.executing.append("r1", Telling(1, 6, events("f")), tell_events)
        with pytest.raises(Conflict, match="attempt 1"):
            await base.executing.append("r1", Telling(2, 4, events("d")), tell_events)
        found = await base.executing.events("r1")
        assert [(one.seq, one.type, one.data["text"]) for one in found] == [
            (1, "a", "a\0ü"), (2, "b", "b\0ü"), (3, "c", "c\0ü"),
        ]  # fmt: skip
        assert [one.seq for one in await base.executing.events("r1", after=1, limit=1)] == [2]
        assert (await kinds(base)).count("run.event") == 2


async def test_an_end_is_told_once_and_another_end_is_refused(place: Place) -> None:
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        await base.executing.begin("r1", taking("n1"), tell)
        ending = Ending(1, "failed", {"x": [None]}, {"code": "c", "message": "m"})
        ended = await asyncio.gather(*(base.executing.finish("r1", ending, tell) for _ in range(4)))
        assert len(set(map(repr, ended))) == 1
        assert await kinds(base) == ["run.running", "run.failed"]
        for other in (replace(ending, state="done"), replace(ending, attempt=2), replace(ending, result=1)):
            with pytest.raises(Conflict):
                await base.executing.finish("r1", other, tell)
        assert all(one.revoked_at is not None for one in await base.tokens.all())


async def test_an_abandoned_run_is_lost_once_and_never_when_its_owner_was_heard(place: Place) -> None:
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        begun = await base.executing.begin("r1", taking("n1"), tell)
        assert await base.executing.abandoned(NOW) == ()
        assert [one.id for one in await base.executing.abandoned(LATER)] == ["r1"]
        assert await base.executing.lose(begun, {}, NOW, tell) is None
        lost = await asyncio.gather(*(base.executing.lose(begun, {"code": "c"}, LATER, tell) for _ in range(4)))
        (one,) = [found for found in lost if found is not None]
        assert (one.state, one.error) == ("lost", {"code": "c"})
        assert await kinds(base) == ["run.running", "run.lost"]


async def test_runners_are_remembered_as_they_described_themselves(place: Place) -> None:
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        await base.executing.begin("r1", taking("n1"), tell)
        assert [(one.id, one.capacity) for one in await base.runners.all()] == [("n1", 1)]
        assert await base.runners.beat(RunnerRecord("n1", 4, ("r1",), ("command",))) == ()
        await base.runs.set_state("r1", ["running"], "stopping")
        assert await base.runners.beat(RunnerRecord("n1", 4, ("r1",), ("command",))) == ("r1",)
        assert await base.runners.beat(RunnerRecord("n2", 1)) == ()
        place.run("UPDATE runners SET last_seen = '2020-01-01T00:00:00.000000Z' WHERE id = 'n2'")
        await base.runners.beat(RunnerRecord("n1", 4, ("r1",), ("command",)))
        assert len(await base.runners.all()) == 2
        await base.runners.beat(RunnerRecord("n3", 1))
        first, second = await base.runners.all()
        assert (first.running, first.executors, second.id) == (("r1",), ("command",), "n3")
        assert first.first_seen < first.last_seen


@pytest.mark.promise("RUNS-EVENTS-KEPT")
async def test_what_runs_told_that_ended_long_ago_goes_and_nothing_else(place: Place) -> None:
    async with place.open() as base:
        for number in (1, 2, 3):
            await base.runs.add(run(number), session(number))
            await base.executing.begin(f"r{number}", Taking("n1", token(f"t{number}", f"r{number}")), tell)
            for first in range(1, 2_200, 1_000):
                told = Telling(1, first, events(*["tick"] * 1_000))
                await base.executing.append(f"r{number}", told, tell_events)
        for number in (1, 2):
            await base.executing.finish(f"r{number}", Ending(1, "done", "kept"), tell)
        place.run("UPDATE runs SET ended_at = '2020-01-01T00:00:00.000000Z' WHERE id = 'r1'")
        assert await base.pruning.forget_events("2020-01-01T00:00:00.000000Z") == (0, None)
        assert await base.pruning.forget_events("2020-01-02T00:00:00.000000Z") == (3_000, None)
        assert await base.pruning.forget_events("2020-01-02T00:00:00.000000Z") == (0, None)
        assert [len(await base.executing.events(f"r{number}", 0, 5_000)) for number in (1, 2, 3)] == [0, 3_000, 3_000]
        kept = await base.runs.get("r1")
        assert kept is not None
        assert (kept.state, kept.result) == ("done", "kept")


async def test_tokens_of_runs_that_ended_long_ago_go(place: Place) -> None:
    async with place.open() as base:
        ended = (datetime.now(UTC) - timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        old = replace(token("old", "r0"), revoked_at=ended)
        for one in (old, replace(old, id="kept", digest="k", run_id=None)):
            await base.tokens.add(one)
        await base.runs.add(run(1), session(1))
        await base.executing.begin("r1", taking("n1"), tell)
        await base.executing.finish("r1", Ending(1, "done"), tell)
        assert (await base.pruning.forget_tokens(), await base.pruning.forget_tokens()) == (1, 0)
        assert {one.id for one in await base.tokens.all()} == {"kept", "t-n1"}


async def test_whoever_follows_hears_of_what_one_transaction_did(place: Place) -> None:
    async with place.open() as base, asyncio.timeout(60):
        await base.runs.add(run(1), session(1))
        streams = [base.runs.follow(), base.tokens.follow(), base.events.follow()]
        before = [await anext(stream) for stream in streams]
        await base.executing.begin("r1", taking("n1"), tell)
        after = [await anext(stream) for stream in streams]
        assert after == [before[0] + 1, before[1] + 1, before[2] + 1]
        await base.executing.append("r1", Telling(1, 1, events("a", "b")), tell_events)
        assert await anext(streams[2]) == after[2] + 1
        for stream in streams:
            await stream.aclose()


async def test_only_who_speaks_for_a_runner_speaks_for_its_runs(place: Place) -> None:
    ann, bob, admin = Speaker("token:ann"), Speaker("token:bob"), Speaker("token:root", is_admin=True)
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        await base.executing.begin("r1", replace(taking("n1"), speaker=ann), tell)
        told, ending = Telling(1, 1, events("a")), Ending(1, "done")
        for other in (bob, Speaker()):
            with pytest.raises(Conflict, match="executed by runner 'n1'"):
                await base.executing.append("r1", told, tell_events, other)
            with pytest.raises(Conflict, match="executed by runner 'n1'"):
                await base.executing.finish("r1", ending, tell, other)
            with pytest.raises(Conflict, match="somebody else's"):
                await base.runners.beat(RunnerRecord("n1", 1), other)
            with pytest.raises(Conflict, match="somebody else's"):
                await base.executing.begin("r1", replace(taking("n1", "again"), speaker=other), tell)
        over = replace(taking("n2"), speaker=bob, instead_of="n1")
        with pytest.raises(Conflict, match="alive"):
            await base.executing.begin("r1", over, tell)
        assert (await base.executing.append("r1", told, tell_events, admin))[0].seq == 1
        await base.runners.beat(RunnerRecord("n1", 1), admin)
        await base.runners.beat(RunnerRecord("n1", 1), ann)
        taken = await base.executing.begin("r1", replace(over, dead_before=LATER), tell)
        assert (taken.owner, taken.attempt) == ("n2", 2)
        with pytest.raises(Conflict):
            await base.executing.finish("r1", Ending(2, "done"), tell, ann)
        assert (await base.executing.finish("r1", Ending(2, "done"), tell, bob)).state == "done"
        await base.runners.beat(RunnerRecord("n1", 1), bob, LATER)
        with pytest.raises(Conflict, match="somebody else's"):
            await base.runners.beat(RunnerRecord("n1", 1), ann)


async def test_a_runner_without_a_speaker_is_its_first_ones(place: Place) -> None:
    async with place.open() as base:
        await base.runners.beat(RunnerRecord("n1", 1))
        await base.runners.beat(RunnerRecord("n1", 1), Speaker("token:ann"))
        with pytest.raises(Conflict):
            await base.runners.beat(RunnerRecord("n1", 1), Speaker("token:bob"))


async def test_a_heartbeat_hears_of_every_run_that_is_not_the_runners_own(place: Place) -> None:
    async with place.open() as base:
        for number in (1, 2, 3, 4):
            await base.runs.add(run(number), session(number))
        for number, owner in ((1, "n1"), (2, "n1"), (3, "n2")):
            name = f"t{number}"
            await base.executing.begin(f"r{number}", Taking(owner, token(name, f"r{number}")), tell)
        await base.executing.finish("r2", Ending(1, "done"), tell)
        said = RunnerRecord("n1", 4, ("r1", "r2", "r3", "r4", "r9", "r9"))
        assert await base.runners.beat(said) == ("r2", "r3", "r9")
        assert await base.runners.beat(said, dead_before=LATER) == ("r2", "r9"), "a dead one's run may be taken over"


async def test_a_run_tells_so_much_and_no_more_and_goes_on(place: Place) -> None:
    async with place.open() as base:
        few = replace(base.executing, most_events=3)
        await base.runs.add(run(1), session(1))
        await few.begin("r1", taking("n1"), tell)
        await few.append("r1", Telling(1, 1, events("a", "b")), tell_events)
        with pytest.raises(TooManyEvents):
            await few.append("r1", Telling(1, 3, events("c", "d")), tell_events)
        await few.append("r1", Telling(1, 3, events("c")), tell_events)
        await few.append("r1", Telling(1, 1, events("a", "b", "c")), tell_events)
        assert (await few.finish("r1", Ending(1, "done"), tell)).state == "done"
