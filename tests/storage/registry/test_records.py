"""Runs, sessions, tokens and events: together or not at all, moved by one, numbered without gaps."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from outfitter.errors import AlreadyExists, Conflict, NotFound
from outfitter.storage import RunRecord, SessionRecord, TokenRecord
from tests.storage.registry.places import Place

pytestmark = pytest.mark.anyio
NOW = "2026-11-16T00:00:00.000000Z"


def run(number: int, agent: str = "tester") -> RunRecord:
    headers = {"docs": {"X-Scope": {"a": 1}}}
    return RunRecord(f"r{number}", "start_session", agent, "do\0 it", f"s{number}", NOW, "ann", headers)


def session(number: int, parent: str | None = None) -> SessionRecord:
    return SessionRecord(f"s{number}", "tester", f"r{number}", NOW, {"servers": {}}, parent_id=parent)


async def test_a_run_and_its_session_are_kept_together_or_not_at_all(place: Place) -> None:
    async with place.open() as base:
        added = await base.runs.add(run(1), session(1))
        assert replace(added, seq=0) == run(1)
        for again in ((run(1), session(2)), (run(2), session(1))):
            with pytest.raises(AlreadyExists):
                await base.runs.add(*again)
        with pytest.raises(NotFound):
            await base.runs.add(run(3), None)
        assert [one.id for one in await base.runs.list()] == ["r1"]
        assert [one.id for one in await base.runs.sessions()] == ["s1"]


async def test_a_run_moves_only_from_a_state_that_was_named(place: Place) -> None:
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        moved = await base.runs.set_state("r1", ["pending"], "running")
        assert (moved.state, moved.ended_at) == ("running", None)
        assert moved.started_at is not None
        done = await base.runs.set_state("r1", ["running", "stopping"], "failed", error={"code": "x"}, result=0)
        assert (done.state, done.error, done.result, done.started_at) == ("failed", {"code": "x"}, 0, moved.started_at)
        ended = await base.runs.session("s1")
        assert ended is not None
        assert (ended.state, ended.ended_at) == ("failed", done.ended_at)
        with pytest.raises(Conflict, match="failed"):
            await base.runs.set_state("r1", ["running"], "done")
        with pytest.raises(NotFound):
            await base.runs.set_state("r9", ["running"], "done")


async def test_of_many_who_take_a_run_one_gets_it(place: Place) -> None:
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        tries = [base.runs.set_state("r1", ["pending"], "running") for _ in range(8)]
        answers = await asyncio.gather(*tries, return_exceptions=True)
        assert sorted(type(answer).__name__ for answer in answers) == ["Conflict"] * 7 + ["RunRecord"]


async def test_a_session_goes_on_with_another_run(place: Place) -> None:
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        await base.runs.set_state("r1", ["pending"], "done")
        await base.runs.add(replace(run(2), type="resume_session", session_id="s1"), None)
        resumed = await base.runs.session("s1")
        assert resumed is not None
        assert (resumed.run_id, resumed.state, resumed.ended_at) == ("r2", "pending", None)
        assert [one.id for one in await base.runs.list(session_id="s1")] == ["r2", "r1"]


async def test_of_many_who_resume_a_session_one_does(place: Place) -> None:
    async with place.open() as base:
        await base.runs.add(run(1), session(1))
        with pytest.raises(Conflict, match="pending"):
            await base.runs.add(replace(run(2), session_id="s1"), None)
        await base.runs.set_state("r1", ["pending"], "done")
        tries = [base.runs.add(replace(run(number), session_id="s1"), None) for number in range(2, 8)]
        answers = await asyncio.gather(*tries, return_exceptions=True)
        assert sorted(type(answer).__name__ for answer in answers) == ["Conflict"] * 5 + ["RunRecord"]
        assert len(await base.runs.list()) == 2


async def test_runs_and_sessions_are_listed_newest_first_in_pages(place: Place) -> None:
    async with place.open() as base:
        for number in range(7):
            parent = "s0" if number in {2, 4} else None
            await base.runs.add(run(number, "odd" if number % 2 else "even"), session(number, parent))
        await base.runs.set_state("r3", ["pending"], "running")
        page = await base.runs.list(limit=3)
        rest = await base.runs.list(last=page[-1].seq)
        assert [one.id for one in (*page, *rest)] == [f"r{number}" for number in range(6, -1, -1)]
        assert [one.id for one in await base.runs.list(agent="odd")] == ["r5", "r3", "r1"]
        assert [one.id for one in await base.runs.list(states={"running"})] == ["r3"]
        assert [one.id for one in await base.runs.children("s0")] == ["s2", "s4"]
        assert [one.id for one in await base.runs.sessions(state="running")] == ["s3"]
        found = await base.runs.sessions(agent="tester", limit=2)
        assert [one.id for one in await base.runs.sessions(before=found[-1].seq, limit=1)] == ["s4"]


async def test_tokens_that_ended_long_ago_are_not_read_again_and_again(place: Place) -> None:
    token = TokenRecord("t", "digest", "viewer", NOW, "ann")
    long_ago = "2020-01-01T00:00:00.000000Z"
    ended = (
        replace(token, id="revoked", digest="d1", revoked_at=long_ago),
        replace(token, id="over", digest="d2", expires_at=long_ago),
    )
    async with place.open() as base:
        for record in (token, *ended):
            await base.tokens.add(record)
        assert await base.tokens.all() == (token,)
        await base.tokens.revoke("t")
        assert [record.id for record in await base.tokens.all()] == ["t"], "what has just ended is shown for a while"
        with pytest.raises(AlreadyExists):
            await base.tokens.add(ended[0])


async def test_tokens_are_kept_revoked_and_touched(place: Place) -> None:
    token = TokenRecord("t1", "digest", "admin", NOW, "ann", label="first")
    async with place.open() as base:
        await base.tokens.add(token)
        assert await base.tokens.all() == (token,)
        for twin in (token, replace(token, id="t2")):
            with pytest.raises(AlreadyExists):
                await base.tokens.add(twin)
        generation = await base.tokens.generation()
        await base.tokens.touch("t1", "2026-11-16T01:00:00Z")
        await base.tokens.touch("t1", "2026-11-16T00:30:00Z")
        assert (await base.tokens.all())[0].last_used_at == "2026-11-16T01:00:00Z"
        assert await base.tokens.generation() == generation
        assert await base.tokens.revoke("t1")
        assert not await base.tokens.revoke("t1")
        assert await base.tokens.generation() == generation + 1
        assert (await base.tokens.all())[0].revoked_at is not None


async def test_events_are_numbered_in_order_and_old_ones_go(place: Place) -> None:
    async with place.open(kept_events=100) as base:
        assert await base.events.span() == (0, 0)
        first = await asyncio.gather(*(base.events.append("k", "s", {"n": number}) for number in range(20)))
        assert sorted(first) == list(range(1, 21))
        for _ in range(260 - 20):
            await base.events.append("run.done", "runs/r1", {"ü": None})
        assert await base.events.span() == (157, 260)
        assert [one.seq for one in await base.events.after(256)] == [257, 258, 259, 260]
        (event,) = await base.events.after(0, limit=1)
        assert (event.seq, event.kind, event.subject, event.data) == (157, "run.done", "runs/r1", {"ü": None})


async def test_whoever_follows_hears_of_runs_tokens_and_events(place: Place) -> None:
    async with place.open() as base, asyncio.timeout(10):
        streams = [base.runs.follow(), base.tokens.follow(), base.events.follow(), base.registry.follow()]
        assert [await anext(stream) for stream in streams] == [0, 0, 0, 0]
        await base.runs.add(run(1), session(1))
        await base.tokens.add(TokenRecord("t1", "digest", "admin", NOW, "ann"))
        await base.events.append("k", "s", {})
        assert [await anext(stream) for stream in streams[:3]] == [1, 1, 1]
        for stream in streams:
            await stream.aclose()
