"""Runs against the bare engine: what claiming, fencing, telling and finishing cost on top of a durable workflow.

Both sides are processes of their own, with the same number of durable steps on a SQLite file. Ours asks a real
coordinator over HTTP for everything; its executor does nothing, or waits for a second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gateway_stage import Stage, free_port, stage
from benchmarks.measure import Ratio

_RUNS, _PLACES, _ROUNDS = 100, 16, 3
_MANY, _SOME, _SECONDS = 50, 10, 1.0
_BARE = """
import asyncio, sqlite3, sys, time
from dbos import DBOS, SetWorkflowID

async def main(file, runs, places, seconds):
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    DBOS(config={"name": "bare", "system_database_url": f"sqlite:///{file}", "executor_id": "bare",
                 "application_version": "1", "log_level": "ERROR"})
    async def note():
        return True
    async def execute():
        await asyncio.sleep(seconds)
        return {"state": "done"}
    @DBOS.workflow(name="bare")
    async def run(run_id):
        await DBOS.run_step_async({"name": "note"}, note)
        return await DBOS.run_step_async({"name": "execute"}, execute)
    DBOS.launch()
    room = asyncio.Semaphore(places)
    async def one(number):
        async with room:
            with SetWorkflowID(f"run-{number}"):
                handle = await DBOS.start_workflow_async(run, f"run-{number}")
            await handle.get_result()
    began = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(runs)))
    print(time.perf_counter() - began, flush=True)
    await asyncio.to_thread(DBOS.destroy)

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
"""
_OURS = """
import sys, time
from pathlib import Path
import anyio
from outfitter.basics import Secret
from outfitter.runner import Desk, Ended, GivenToken, Runner, RunnerOptions

class Waits:
    def __init__(self, seconds):
        self.seconds = seconds
    async def execute(self, order, report):
        await anyio.sleep(self.seconds)
        return Ended("done")

async def main(folder, url, token, places, seconds):
    options = RunnerOptions("bench", f"sqlite:///{folder}/runner.sqlite", Path(folder), places, is_once=True)
    began = [0.0]
    def start():
        began[0] = time.perf_counter()
    async with Desk(url, GivenToken(Secret(token))) as desk:
        runner = Runner(desk, options, {"command": Waits(seconds)})
        ended = []
        runner.on_change = lambda figures: ended.append(time.perf_counter()) if figures.done else None
        await runner.run(start)
    assert set(runner.figures.states) == {"done"}, runner.figures
    print(ended[-1] - began[0], flush=True)

anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
"""


def _ask(url: str, token: str, path: str, body: object = None, **headers: str) -> Any:  # noqa: ANN401 - JSON
    data = json.dumps({} if body is None else body).encode()
    named = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"{url}{path}", data, named, method="POST")  # noqa: S310 - our own service
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own service
        return json.load(answer)


def _service(one: Stage) -> tuple[str, str]:
    """A coordinator with an agent that can be executed; its URL and its admin token."""
    port, log = free_port(), one.folder / "up.log"
    places = {"OUTFITTER_STATE": str(one.folder / "state"), "OUTFITTER_CATALOG": str(one.folder / "none")}
    with log.open("wb") as opened:
        process = subprocess.Popen(
            [sys.executable, "-m", "outfitter", "up", "--port", str(port)],
            env={**os.environ, **places}, stdout=opened, stderr=opened, start_new_session=True,
        )  # fmt: skip
    one.processes.append(process)
    deadline = time.monotonic() + 60
    while "Listening" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    token = next(line.strip() for line in log.read_text().splitlines() if line.strip().startswith("oft_first_"))
    url = f"http://127.0.0.1:{port}"
    executor = {"type": "command", "command": sys.executable, "args": ["nothing.py"]}
    _ask(url, token, "/agents", {"name": "worker", "executor": executor})
    _ask(url, token, "/agents/worker/approve", **{"If-Match": '"1"'})
    return url, token


def _time(*command: str) -> float:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split()[-1])


def _ours(one: Stage, service: tuple[str, str], runs: int, places: int, seconds: float) -> float:
    url, token = service
    for number in range(runs):
        _ask(url, token, "/runs", {"agent_name": "worker", "prompt": f"run {number}"})
    with tempfile.TemporaryDirectory(dir=one.folder) as folder:
        return _time(sys.executable, "-c", _OURS, folder, url, token, str(places), str(seconds))


def _bare(one: Stage, runs: int, places: int, seconds: float) -> float:
    with tempfile.TemporaryDirectory(dir=one.folder) as folder:
        return _time(sys.executable, "-c", _BARE, f"{folder}/bare.sqlite", str(runs), str(places), str(seconds))


def measure() -> Iterator[Ratio]:
    """Everything of the runner."""
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as one:
        service = _service(one)
        empty: tuple[list[float], list[float]] = ([], [])
        for _ in range(_ROUNDS):
            empty[0].append(_ours(one, service, _RUNS, _PLACES, 0.0) / _RUNS)
            empty[1].append(_bare(one, _RUNS, _PLACES, 0.0) / _RUNS)
        against = "a workflow of the engine, same steps"
        yield Ratio("an empty run, claimed and finished", min(empty[0]), min(empty[1]), against, 2.0)
        some = min(_ours(one, service, _MANY, _SOME, _SECONDS) for _ in range(_ROUNDS))
        yield Ratio(
            f"{_MANY} runs of 1 s, {_SOME} at a time", some, _MANY / _SOME * _SECONDS, "runs / places x 1 s", 1.3
        )
        at_once: tuple[list[float], list[float]] = ([], [])
        for _ in range(_ROUNDS):
            at_once[0].append(_ours(one, service, _MANY, _MANY, _SECONDS))
            at_once[1].append(_bare(one, _MANY, _MANY, _SECONDS))
        against = "as many workflows of the engine"
        yield Ratio(f"{_MANY} runs of 1 s, all at once", min(at_once[0]), min(at_once[1]), against, 1.5)


if __name__ == "__main__":
    for ratio in measure():
        print(f"{ratio.what}: {ratio.text(ratio.subject)}, {ratio.against}: {ratio.text(ratio.yardstick)}, "
              f"{ratio.value:.2f} (limit {ratio.limit:g})", flush=True)  # fmt: skip
