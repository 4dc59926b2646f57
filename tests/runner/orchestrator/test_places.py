"""A run that waits for another one takes no place: rows of agents end on one place, and nobody waits in a circle."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.app.kit import Place, Up, until
from tests.runner.between import between, quick_beats
from tests.runner.orchestrator.kit import PATIENCE
from tests.runner.orchestrator.programs import END, LEAD, ORCHESTRATOR, running

pytestmark = pytest.mark.anyio
# Everybody notes when it is at work: "+" when it begins or goes on, "-" before it waits and when it ends.
WORK = """
import pathlib, time

folder = pathlib.Path(FOLDER)
ENDED = ("done", "failed", "stopped", "lost")


def note(sign):
    with (folder / "work").open("a") as file:
        file.write(sign + order["agent"] + " " + order["run_id"] + "\\n")


def wait_for(tool, **arguments):
    note("-")
    said = call("orchestrator", tool, **arguments)["structuredContent"]
    while said["state"] not in ENDED:
        said = call("orchestrator", "get_agent_result", session_id=said["session_id"], wait=60)["structuredContent"]
    note("+")
    return said


note("+")
"""
ROW = """
below = {"lead": "worker", "worker": "helper"}.get(order["agent"])
said = order["agent"]
if below:
    said += " > " + wait_for("start_agent", agent=below, prompt="go")["result"]
else:
    while not (folder / "go").exists():
        time.sleep(0.05)
note("-")
"""
SAME = """
said = "child"
if order["prompt"] == "go":
    children = []
    while not children:
        children = call("orchestrator", "get_agent_status")["structuredContent"]["agents"]
        time.sleep(0.05)
    said = "lead > " + wait_for("get_agent_result", session_id=children[0]["session_id"], wait=60)["result"]
note("-")
"""


HASTY = """
import urllib.error

said = order["agent"]
if order["agent"] == "lead":
    note("-")
    try:
        call("orchestrator", "start_agent", seconds=3, agent="worker", prompt="go")
    except (TimeoutError, urllib.error.URLError):
        note("+")
while not (folder / "go").exists():
    time.sleep(0.05)
note("-")
"""


def write(place: Place, text: str, *agents: str, **executor: object) -> None:
    """Agents that have the orchestrator and are executed by a program."""
    place.write("mcp-servers/orchestrator.json", ORCHESTRATOR)
    program = place.folder / "program.py"
    program.write_text(LEAD + WORK.replace("FOLDER", repr(str(place.folder))) + text + END)
    command = {"type": "command", "command": sys.executable, "args": [str(program)], **executor}
    for name in agents:
        uses = {"orchestrator": {"ref": "orchestrator"}}
        place.write(f"agents/{name}.json", {"name": name, "mcpServers": uses, "executor": command})


def most_at_work(file: Path) -> int:
    """How many were at work at a time."""
    now = most = 0
    for line in file.read_text().splitlines():
        now += 1 if line.startswith("+") else -1
        most = max(most, now)
    assert now == 0
    return most


async def end_of(up: Up, run_id: str) -> dict[str, Any]:
    """A run once it has ended."""
    with anyio.fail_after(PATIENCE):
        while (run := (await up.api("GET", f"/runs/{run_id}"))[1])["ended_at"] is None:  # noqa: ASYNC110 - another process makes it so
            await anyio.sleep(0.1)
    return run


@pytest.mark.promise("RUNNER-WAITING")
async def test_a_parent_a_child_and_a_grandchild_end_on_one_place(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.folder.mkdir()
    write(place, ROW, "lead", "worker", "helper")
    async with place.up() as up, between(up.url) as middle:
        middle.change = quick_beats
        token = (await up.api("POST", "/tokens", {"role": "runner"}))[1]["token"]
        asked = {"agent_name": "lead", "prompt": "go"}
        leads = [(await up.api("POST", "/runs", asked))[1]["id"] for _ in range(4)]
        async with running(place, middle.url, token, "--concurrency", "1"):
            work = place.folder / "work"
            await until(lambda: work.exists() and "+helper" in work.read_text())
            row = [line.split()[1] for line in work.read_text().splitlines() if line.startswith("+")]
            beats = middle.count("PUT", "")
            await until(lambda: middle.count("PUT", "") > beats + 2)
            told = [one.body for one in middle.seen if one.method == "PUT"][-1]
            assert (told["capacity"], told["running"]) == (1, row), "those that wait are executed here, too"
            assert len(row) == 3, "what is waited for comes before everybody else"
            (place.folder / "go").touch()
            ends = [await end_of(up, run_id) for run_id in leads]
        assert [(run["state"], run["result"]) for run in ends] == [("done", "lead > worker > helper")] * 4
        assert most_at_work(work) == 1
        assert "Traceback" not in (place.folder / "runner.log").read_text()


@pytest.mark.promise("RUNNER-WAITING")
async def test_an_agent_that_may_run_once_at_a_time_waits_for_another_run_of_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.folder.mkdir()
    write(place, SAME, "lead", concurrency=1)
    async with place.up() as up:
        token = (await up.api("POST", "/tokens", {"role": "runner"}))[1]["token"]
        run = (await up.api("POST", "/runs", {"agent_name": "lead", "prompt": "go"}))[1]
        below = {"agent_name": "lead", "prompt": "child", "parent_session_id": run["session_id"]}
        async with running(place, up.url, token):
            work = place.folder / "work"
            await until(work.exists)
            status, child, _ = await up.api("POST", "/runs", below)
            assert status == 201, child
            ends = [await end_of(up, one["id"]) for one in (run, child)]
        assert [(one["state"], one["result"]) for one in ends] == [("done", "lead > child"), ("done", "child")]
        assert most_at_work(work) == 1


@pytest.mark.promise("RUNNER-WAITING")
async def test_a_run_whose_client_gave_up_waiting_has_its_place_again(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.folder.mkdir()
    write(place, HASTY, "lead", "worker", "helper")
    async with place.up() as up, between(up.url) as middle:
        middle.change = quick_beats
        token = (await up.api("POST", "/tokens", {"role": "runner"}))[1]["token"]
        lead = (await up.api("POST", "/runs", {"agent_name": "lead", "prompt": "go"}))[1]["id"]
        async with running(place, middle.url, token, "--concurrency", "2"):
            work = place.folder / "work"
            await until(lambda: work.exists() and work.read_text().count("+lead") == 2)
            await until(lambda: "+worker" in work.read_text())
            third = (await up.api("POST", "/runs", {"agent_name": "helper", "prompt": "go"}))[1]["id"]
            beats = middle.count("PUT", "")
            await until(lambda: middle.count("PUT", "") > beats + 10)
            assert (await up.api("GET", f"/runs/{third}"))[1]["state"] == "pending"
            (place.folder / "go").touch()
            ends = [await end_of(up, run_id) for run_id in (lead, third)]
        assert [run["state"] for run in ends] == ["done", "done"]
        assert most_at_work(work) == 2
