"""``outfitter up --runner``: the runner ends before its gateway does, so that nothing it has to say is lost."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.app.kit import Place, until, until_answer
from tests.runner.kit import AGENT, Team, marked

pytestmark = pytest.mark.anyio


def processes_of(place: Place) -> list[int]:
    """Every process that was started with the state folder of this place, its zombies left out."""
    wanted = f"OUTFITTER_STATE={place.state}\0".encode()
    found: list[int] = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdecimal() and wanted in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def write_agent(place: Place, name: str, **executor: object) -> None:
    command = {"type": "command", "command": sys.executable, "args": [str(AGENT)], **executor}
    place.write(f"agents/{name}.json", {"name": name, "executor": command})


@pytest.mark.promise("RUNNER-BESIDE-END")
@pytest.mark.parametrize(
    ("options", "how"), [(("--open",), signal.SIGTERM), (("--open", "--workers", "2"), signal.SIGINT)]
)
async def test_a_gateway_that_is_told_to_stop_has_heard_how_a_busy_run_of_its_runner_ended(
    tmp_path: Path, options: tuple[str, ...], how: signal.Signals
) -> None:
    place, pids = Place(tmp_path / "place", {"OUTFITTER_TOKEN": ""}), tmp_path / "pids"
    write_agent(place, "fragile")
    write_agent(place, "sturdy", recover=True)
    async with place.up("--runner", *options) as up:
        one = Team(up, "")
        fragile = await one.run(f"spawn {pids}", "fragile")
        sturdy = await one.run(f"note {tmp_path}/noted 600", "sturdy")
        await one.until_told(fragile, "spawned")
        await one.until_told(sturdy, "noted")
        assert await up.stop(how) == 0, up.log()
        assert not marked(fragile)
        assert not marked(sturdy)
        assert processes_of(place) == []
        assert "Traceback" not in up.log()
        assert "not revoked" not in up.log()
    async with place.up("--open") as up:
        one = Team(up, "")
        await until_answer(lambda: up.api("GET", "/runs"), 200)
        run = await one.look(fragile)
        assert (run["state"], run["error"]["code"]) == ("lost", "runner_stopped"), run
        left = await one.look(sturdy)
        assert (left["state"], left["attempt"]) == ("running", 1), "it is executed again by the next runner"
        assert [event["type"] for event in await one.events(sturdy)] == ["noted"]


async def test_a_gateway_that_is_killed_takes_its_runner_along_and_hears_the_end_of_its_runs_later(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path / "place", {"OUTFITTER_TOKEN": ""})
    write_agent(place, "fragile")
    async with place.up("--runner", "--open") as up:
        one = Team(up, "")
        run_id = await one.run("count 100000 0.05", "fragile")
        await one.until_told(run_id, "tick")
        await up.stop(signal.SIGKILL)
        await until(lambda: not processes_of(place))
        assert not marked(run_id)
    async with place.up("--runner", "--open") as up:
        one = Team(up, "")
        await until_answer(lambda: up.api("GET", "/runs"), 200)
        run = await one.end_of(run_id)
        assert (run["state"], run["error"]["code"]) == ("lost", "runner_stopped"), run
        assert await up.stop() == 0
