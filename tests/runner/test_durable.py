"""Deaths and outages: every run ends once, nothing runs twice that must not, no event is lost, no process is left."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.app.kit import Place, until
from tests.runner.kit import Team, marked, team, until_gone

pytestmark = pytest.mark.anyio
END = {"done", "failed", "stopped", "lost"}


def lines_of(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


async def ends_of(one: Team, last: str) -> Counter[tuple[str, str]]:
    """How often each run was told to have ended in each state, from the beginning until this run has ended."""
    found: Counter[tuple[str, str]] = Counter()
    headers = {"authorization": f"Bearer {one.up.token}"}
    async with one.up.http.get(f"{one.up.url}/events?after=0", headers=headers) as answer:
        async for line in answer.content:
            if line.startswith(b"data:"):
                event = json.loads(line[5:])
                run_id, state = (
                    event.get("subject", "").removeprefix("runs/"),
                    event.get("kind", "").removeprefix("run."),
                )
                if state in END:
                    found[run_id, state] += 1
                if run_id == last and state in END:
                    break
    return found


@asynccontextmanager
async def restarted(one: Team, how: signal.Signals) -> AsyncGenerator[Team]:
    """The coordinator ended and started again on its port."""
    await one.up.stop(how)
    port = str(urlsplit(one.up.url).port)
    async with Place(one.folder).up("--port", port, token=one.up.token) as up:
        yield Team(up, one.token, one.names)


@pytest.mark.promise("RUNNER-DURABLE", "F25")
async def test_a_killed_runner_s_runs_end_once_each_while_the_coordinator_restarts(tmp_path: Path) -> None:
    done = tmp_path / "noted"
    async with team(tmp_path) as first:
        await first.agent("fragile", concurrency=4)
        await first.agent("sturdy", recover=True)
        runs = [await first.run(f"note {done} 1", agent) for _ in range(10) for agent in ("fragile", "sturdy")]
        with first.runner("--concurrency", "8") as runner:
            await until(lambda: len(lines_of(done)) >= 8)
            await runner.stop(signal.SIGKILL)
            cut_off = {run_id for run_id in runs if marked(run_id)}
            assert cut_off, "their processes are still there"
            async with restarted(first, signal.SIGKILL) as one:
                with one.runner("--concurrency", "8"):
                    ended = {run_id: await one.end_of(run_id) for run_id in runs}
                    last = await one.run("the last one", "sturdy")
                    await one.end_of(last)
                ends = await ends_of(one, last)
                events = {run_id: await one.events(run_id) for run_id in runs}
        assert not any(marked(run_id) for run_id in runs)
    times = Counter(lines_of(done))
    for run_id, run in ended.items():
        assert ends[run_id, run["state"]] == 1, run
        assert sum(ends[run_id, state] for state in END) == 1
        assert [event["seq"] for event in events[run_id]] == list(range(1, len(events[run_id]) + 1))
        if run["agent_name"] == "sturdy":
            assert run["state"] == "done", run
            assert times[run_id] <= 2
        else:
            assert run["state"] in {"done", "lost"}, run
            assert times[run_id] <= 1, "one that may not be repeated was not"
        assert run["state"] != "done" or [event["type"] for event in events[run_id]][-1] == "woken"
    assert {run["state"] for run in ended.values()} == {"done", "lost"}
    assert all(ended[run_id]["attempt"] >= 2 for run_id in cut_off)


async def test_what_a_run_tells_while_the_coordinator_is_away_comes_later_in_order_and_once(tmp_path: Path) -> None:
    async with team(tmp_path) as first:
        await first.agent()
        run_id = await first.run("count 200 0.03")
        with first.runner() as runner:
            await first.until_told(run_id, "tick")
            await first.up.stop(signal.SIGKILL)
            events = tmp_path / "state" / "runner" / "r1" / "events" / f"{run_id}.events"
            size = events.stat().st_size
            await until(lambda: events.stat().st_size > size + 3000)
            async with restarted(first, signal.SIGKILL) as one:
                run = await one.end_of(run_id)
                told = [event["data"]["number"] for event in await one.events(run_id) if event["type"] == "tick"]
                await until_gone(events.exists)
                assert "Traceback" not in runner.log()
    assert (run["state"], run["attempt"], run["result"]) == ("done", 1, 200)
    assert told == list(range(200))


@pytest.mark.promise("RUNNER-SHARED", "N05")
async def test_two_runners_on_one_postgresql_share_runs_and_execute_none_twice(
    tmp_path: Path, postgres_url: str
) -> None:
    done = tmp_path / "noted"
    async with team(tmp_path) as one:
        await one.agent()
        runs = [await one.run(f"note {done} 0.02") for _ in range(200)]
        shared = ("--database", postgres_url, "--concurrency", "3")
        with one.runner(*shared, name="blue") as blue, one.runner(*shared, name="green") as green:
            ended = [await one.end_of(run_id) for run_id in runs]
            assert await blue.stop() == 0, blue.log()
            assert await green.stop() == 0, green.log()
        assert {run["state"] for run in ended} == {"done"}, [run for run in ended if run["state"] != "done"]
        assert Counter(lines_of(done)) == Counter(runs)
        assert {run["owner"] for run in ended} == {"blue", "green"}
        assert {run["attempt"] for run in ended} == {1}


@pytest.mark.promise("RUNNER-SHARED", "F25")
async def test_a_living_runner_takes_over_what_a_dead_one_left(tmp_path: Path, postgres_url: str) -> None:
    done = tmp_path / "noted"
    async with team(tmp_path, variables={"OUTFITTER_RUNNER_SILENCE": "30"}) as one:
        await one.agent("sturdy", recover=True)
        await one.agent("fragile")
        runs = [await one.run(f"note {done} 5", agent) for agent in ("sturdy", "fragile")]
        with one.runner("--database", postgres_url, name="blue") as blue:
            for run_id in runs:
                await one.until_told(run_id, "noted")
            await blue.stop(signal.SIGKILL)
        with one.runner("--database", postgres_url, name="green") as green:
            await until_gone(lambda: any(map(marked, runs)))
            sturdy, fragile = [await one.end_of(run_id) for run_id in runs]
            assert "Traceback" not in green.log()
    assert (sturdy["state"], sturdy["owner"], sturdy["attempt"]) == ("done", "green", 2)
    assert (fragile["state"], fragile["error"]["code"]) == ("lost", "runner_lost")
    assert Counter(lines_of(done)) == {runs[0]: 2, runs[1]: 1}


@pytest.mark.promise("N05")
async def test_two_runners_with_files_of_their_own_execute_each_run_once(tmp_path: Path) -> None:
    done = tmp_path / "noted"
    async with team(tmp_path) as one:
        await one.agent()
        with one.runner(name="blue", state=tmp_path / "blue"), one.runner(name="green", state=tmp_path / "green"):
            runs = [await one.run(f"note {done} 0.1") for _ in range(16)]
            ended = [await one.end_of(run_id) for run_id in runs]
        assert {(run["state"], run["attempt"]) for run in ended} == {("done", 1)}
        assert Counter(lines_of(done)) == Counter(runs)


@pytest.mark.promise("RUNNER-LIMITS")
async def test_no_more_runs_of_an_agent_go_on_at_a_time_than_it_says(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        await one.agent("narrow", concurrency=2)
        await one.agent("wide")
        runs = [await one.run("count 5 0.1", agent) for agent in ("narrow",) * 6 + ("wide",) * 6]
        with one.runner("--concurrency", "5"):
            ended = [await one.end_of(run_id) for run_id in runs]
        assert {run["state"] for run in ended} == {"done"}, [run for run in ended if run["state"] != "done"]
        # By what the programs themselves tell: the end of a run is known over there a moment after its place is free.
        told = {run["id"]: [event["at"] for event in await one.events(run["id"])] for run in ended}
        for agent, most in (("narrow", 2), ("wide", 5)):
            spans = [(told[run["id"]][0], told[run["id"]][-1]) for run in ended if run["agent_name"] == agent]
            assert max(sum(start <= at <= end for start, end in spans) for at, _ in spans) <= most


async def test_a_second_runner_does_not_use_the_same_file(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        with one.runner() as first:
            await until(lambda: "executes runs" in first.log())
            with one.runner(name="r2") as second:
                await until(lambda: second.process.poll() is not None)
            assert (second.process.returncode, "a runner runs here already" in second.log()) == (5, True)


async def test_a_runner_that_may_not_execute_says_so_and_ends(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        status, body, _ = await one.up.api("POST", "/tokens", {"role": "viewer"})
        assert status == 201
        one.token = body["token"]
        with one.runner() as runner:
            await until(lambda: runner.process.poll() is not None)
        assert (runner.process.returncode, "Traceback" in runner.log()) == (6, False), runner.log()
        assert "may not say that it is alive" in runner.log()
        assert "a token of the role runner" in runner.log()
