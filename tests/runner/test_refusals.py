"""A coordinator that refuses: no run is executed twice for it, nothing spins, and it is said."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.app.kit import ended, until
from tests.runner.between import Seen, between, quick_beats
from tests.runner.kit import marked, team, until_gone

pytestmark = pytest.mark.anyio


def lines_of(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


async def test_a_result_that_is_refused_makes_the_run_fail(tmp_path: Path) -> None:
    async with team(tmp_path) as one, between(one.up.url) as middle:
        middle.refuse = lambda seen: 422 if seen.is_to("POST", "/finish") and seen.body["result"] is not None else None
        await one.agent()
        run_id = await one.run(f"note {tmp_path}/noted 0")
        with one.runner("--server", middle.url) as runner:
            run = await one.end_of(run_id)
            assert "Traceback" not in runner.log()
        assert (run["state"], run["error"]["code"], run["attempt"]) == ("failed", "result_refused", 1)
        assert "status 422" in run["error"]["message"]
        assert lines_of(tmp_path / "noted") == [run_id]


@pytest.mark.parametrize("status", [403, 409, 422])
async def test_a_run_whose_end_nobody_takes_is_not_executed_again_and_again(tmp_path: Path, status: int) -> None:
    async with team(tmp_path) as one, between(one.up.url) as middle:
        middle.refuse = lambda seen: status if seen.is_to("POST", "/finish") else None
        middle.change = quick_beats
        await one.agent(recover=True)
        run_id = await one.run(f"note {tmp_path}/noted 0")
        with one.runner("--server", middle.url) as runner:
            await until(lambda: "was not taken" in runner.log())
            listed = middle.count("GET", "/runners")
            await until(lambda: middle.count("GET", "/runners") > listed + 5)
            assert lines_of(tmp_path / "noted") == [run_id]
            assert middle.count("POST", "/begin") == 1


@pytest.mark.promise("RUNNER-REFUSED")
@pytest.mark.parametrize("status", [403, 404, 409, 422])
async def test_a_run_that_may_never_be_begun_does_not_keep_a_runner_that_ends_when_nothing_is_left(
    tmp_path: Path, status: int
) -> None:
    async with team(tmp_path) as one, between(one.up.url) as middle:
        await one.agent("barred")
        await one.agent()
        barred, good = await one.run("never", "barred"), await one.run("hello")
        middle.refuse = lambda seen: status if seen.is_to("POST", f"/{barred}/begin") else None
        with one.runner("--server", middle.url, "--once") as runner:
            assert await ended(runner.process) == 1, runner.log()
        assert f"may not begin these runs, which stay pending: {barred}" in runner.log()
        assert f"run {barred} cannot be begun (3 times); asked again in 4 s" in runner.log()
        assert "Executed 1 runs (1 done)." in runner.log()
        assert middle.count("POST", "/begin") == 4, "three times for the one, later each time, and once for the other"
        assert ((await one.look(barred))["state"], (await one.look(good))["state"]) == ("pending", "done")


async def test_one_event_that_is_refused_takes_no_other_with_it(tmp_path: Path) -> None:
    def refuse(seen: Seen) -> int | None:
        is_bad = seen.is_to("POST", "/events") and any(
            event["data"].get("number") == 2 for event in seen.body["events"]
        )
        return 422 if is_bad else None

    async with team(tmp_path) as one, between(one.up.url) as middle:
        middle.refuse = refuse
        await one.agent()
        run_id = await one.run("count 6 0")
        with one.runner("--server", middle.url):
            run = await one.end_of(run_id)
        told = [event["data"].get("number", event["type"]) for event in await one.events(run_id)]
        assert (run["state"], told) == ("done", [0, 1, "outfitter.event_refused", 3, 4, 5])


@pytest.mark.parametrize("is_ended", [True, False])
async def test_a_run_that_has_ended_elsewhere_or_was_taken_over_is_ended_without_a_word(
    tmp_path: Path, is_ended: bool
) -> None:
    async with team(tmp_path) as one, between(one.up.url) as middle:
        await one.agent()
        run_id = await one.run(f"note {tmp_path}/noted 600")

        def change(seen: Seen, answer: Any) -> Any:  # noqa: ANN401 - JSON
            if seen.method == "PUT":
                return {**answer, "stop": [run_id] if is_over else [], "seconds": 0.1}
            is_one = is_over and not is_ended and seen.is_to("GET", f"/runs/{run_id}")
            return {**answer, "owner": "another", "attempt": 2} if is_one else answer

        is_over, middle.change = False, change
        with one.runner("--server", middle.url) as runner:
            await one.until_told(run_id, "noted")
            if is_ended:
                end = {"attempt": 1, "state": "lost", "result": None, "error": None}
                status, body, _ = await one.up.api("POST", f"/runs/{run_id}/finish", end)
                assert status == 200, body
            sent, is_over = middle.count("POST", "/events"), True
            await until_gone(lambda: marked(run_id))
            await until(lambda: "no longer executed here" in runner.log())
            assert (middle.count("POST", "/finish"), middle.count("POST", "/events")) == (0, sent)


async def test_what_a_runner_that_nobody_knows_has_begun_is_taken_up(tmp_path: Path) -> None:
    async with team(tmp_path) as one, between(one.up.url) as middle:
        middle.refuse = lambda seen: 503 if seen.is_to("POST", "/begin") else None
        await one.agent()
        run_id = await one.run("hello")
        with one.runner("--server", middle.url, name="forgotten") as first:
            await until(lambda: middle.count("POST", "/begin") > 0)
            await first.stop(signal.SIGKILL)
        middle.refuse = lambda _: None
        middle.change = _without("forgotten")
        with one.runner("--server", middle.url, "--once", name="new") as second:
            assert await ended(second.process) == 0, second.log()
        run = await one.look(run_id)
        assert (run["state"], run["owner"]) == ("done", "new"), second.log()


def _without(name: str) -> Any:  # noqa: ANN401 - a function of JSON
    def change(seen: Seen, answer: Any) -> Any:  # noqa: ANN401 - JSON
        if seen.is_to("GET", "/runners"):
            return {**answer, "items": [item for item in answer["items"] if item["id"] != name]}
        return answer

    return change


async def test_a_runner_that_may_not_see_the_others_does_not_ask_more_often_for_it(tmp_path: Path) -> None:
    async with team(tmp_path) as one, between(one.up.url) as middle:
        middle.refuse = lambda seen: 403 if seen.is_to("GET", "/runners") else None
        middle.change = lambda seen, answer: {**answer, "seconds": 3600} if seen.method == "PUT" else answer
        await one.agent()
        with one.runner("--server", middle.url) as runner:
            await until(lambda: "nothing is taken over" in runner.log())
            assert (await one.end_of(await one.run("count 20 0.1")))["state"] == "done"
            assert middle.count("PUT", "/r1") == 2, "the first one, and the first of those that are kept up"


async def test_a_second_signal_ends_runs_at_once_and_what_was_left_of_earlier_ones_is_gone(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        left = one.up.place.state / "runner" / "r1" / "work" / "run-left"
        left.mkdir(parents=True)
        await one.agent()
        run_id = await one.run("count 100000 0.05")
        with one.runner("--grace", "3600") as runner:
            await one.until_told(run_id, "tick")
            assert not left.exists()

            def is_gone_for_a_signal() -> bool:
                if marked(run_id):
                    runner.process.send_signal(signal.SIGTERM)
                return not marked(run_id)

            await until(is_gone_for_a_signal)
            assert await ended(runner.process) == 0, runner.log()
        assert (await one.end_of(run_id))["error"]["code"] == "runner_stopped"
        assert not marked(run_id)


_IMPATIENT = """
import logging, os, sys
from pathlib import Path
import anyio
from outfitter.basics import Secret
from outfitter.errors import OutfitterError
from outfitter.runner import CommandExecutor, Desk, GivenToken, Runner, RunnerOptions
url, folder = sys.argv[1], Path(sys.argv[2])
async def main():
    async with Desk(url, GivenToken(Secret(os.environ["TOKEN"]))) as desk:
        options = RunnerOptions("r1", f"sqlite:///{folder}/r.sqlite", folder, grace=3600, refused_seconds=0.5)
        await Runner(desk, options, {"command": CommandExecutor(folder / "work")}).run()
try:
    anyio.run(main)
except OutfitterError as error:
    print(error.code, error)
"""


async def test_a_runner_whose_token_stays_refused_ends_its_runs_and_says_so(tmp_path: Path) -> None:
    async with team(tmp_path) as one, between(one.up.url) as middle:
        middle.change = quick_beats
        await one.agent()
        run_id = await one.run("count 100000 0.05")
        command = [sys.executable, "-c", _IMPATIENT, middle.url, str(tmp_path / "impatient")]
        environment = {**one.up.place.environment, "TOKEN": one.token}
        async with await anyio.open_process(command, env=environment, stderr=None) as process:
            assert process.stdout is not None
            await one.until_told(run_id, "tick")
            middle.refuse = lambda _: 401
            told = b"".join([piece async for piece in process.stdout]).decode()
            assert await process.wait() == 0
        assert "needs_token" in told
        assert "OUTFITTER_TOKEN" in told
        assert not marked(run_id)
