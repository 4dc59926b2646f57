"""The coordinator and a runner live and do not reach each other: what a run tells waits, and who is right is clear.

How long it lasts is told by a clock of the coordinator that the test moves: nobody waits for a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.coordinator import LeaseTimes
from tests.app.kit import ended, until
from tests.coordinator.api.kit import Served, service
from tests.runner.kit import AGENT, PATIENCE, marked, until_gone
from tests.runner.orchestrator.kit import Cable, cable

pytestmark = pytest.mark.anyio
MINUTE = 60.0


@dataclass(slots=True)
class Apart:
    """A run that goes on at a runner which the coordinator cannot hear any more."""

    served: Served
    line: Cable
    run_id: str
    events_file: Path
    log: Path

    async def run(self) -> dict[str, Any]:
        return (await self.served.get(f"/runs/{self.run_id}")).json

    async def events(self) -> list[dict[str, Any]]:
        return (await self.served.get(f"/runs/{self.run_id}/events?limit=500")).json["events"]

    async def cut(self) -> None:
        """Nothing gets through any more, and the run tells a lot meanwhile."""
        self.line.target = None
        self.line.cut()
        size = self.events_file.stat().st_size
        await until(lambda: self.events_file.stat().st_size > size + 3000)

    async def lost_after(self, silence: float) -> tuple[str, ...]:
        """What the coordinator gives up when the runner was last heard of so many seconds ago."""
        (runner,) = (await self.served.get("/runners")).json["items"]
        heard = datetime.fromisoformat(runner["last_seen"]).timestamp()
        executions = self.served.office.coordinator.executions
        return await replace(executions, clock=lambda: heard + silence, opened=0.0).sweep()

    async def until_ended(self) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE):
            while (run := await self.run())["ended_at"] is None:  # noqa: ASYNC110 - another process makes it so
                await anyio.sleep(0.05)
        return run


@asynccontextmanager
async def apart(folder: Path, prompt: str) -> AsyncGenerator[Apart]:
    """A run that has told something, and then the line is cut."""
    (folder / "registry").mkdir()
    async with service(folder / "registry") as served, cable(served.url) as line:
        command = {"type": "command", "command": sys.executable, "args": [str(AGENT)]}
        made = await served.must("/agents", {"name": "worker", "executor": command})
        assert (await served.post("/agents/worker/approve", if_match=made.etag)).status == 200
        run_id = (await served.must("/runs", {"agent_name": "worker", "prompt": prompt})).json["id"]
        token = (await served.as_role("runner")).token or ""
        state, log_file = folder / "state", folder / "runner.log"
        environment = {**os.environ, "OUTFITTER_STATE": str(state), "OUTFITTER_TOKEN": token}
        arguments = ["runner", "--server", line.url, "--id", "r1", "--no-orchestrator"]
        with log_file.open("wb") as log:
            process = subprocess.Popen(  # noqa: ASYNC220 - starting takes no time
                [sys.executable, "-m", "outfitter", *arguments], env=environment, stdout=log, stderr=log
            )
        try:
            found = Apart(served, line, run_id, state / "runner" / "r1" / "events" / f"{run_id}.events", log_file)
            with anyio.fail_after(PATIENCE):
                while not await found.events():  # noqa: ASYNC110 - another process makes it so
                    await anyio.sleep(0.05)
            await found.cut()
            yield found
        finally:
            process.terminate()
            await ended(process)


@pytest.mark.promise("F41")
async def test_what_a_run_tells_while_nobody_is_reached_for_a_minute_comes_later_in_order_and_once(
    tmp_path: Path,
) -> None:
    async with apart(tmp_path, "count 400 0.04") as here:
        # The longest silence that an outage of a minute makes: it began just before a heartbeat was due.
        assert await here.lost_after(LeaseTimes().beat + MINUTE) == ()
        assert (await here.run())["state"] == "running"
        assert len(await here.events()) < 400
        here.line.target = here.served.url
        run = await here.until_ended()
        told = await here.events()
        assert (run["state"], run["attempt"], run["result"]) == ("done", 1, 400)
        assert [(event["seq"], event["data"]["number"]) for event in told] == [(one + 1, one) for one in range(400)]
        await until_gone(here.events_file.exists)
        assert "Traceback" not in here.log.read_text()


@pytest.mark.promise("F41")
async def test_a_run_that_was_given_up_in_a_longer_outage_stays_lost_and_is_ended_when_its_runner_comes_back(
    tmp_path: Path,
) -> None:
    async with apart(tmp_path, "count 100000 0.03") as here:
        assert await here.lost_after(LeaseTimes().grace + 1) == (here.run_id,)
        before = await here.events()
        here.line.target = here.served.url
        await until_gone(lambda: marked(here.run_id))
        await until_gone(here.events_file.exists)
        run = await here.run()
        assert (run["state"], run["error"]["code"]) == ("lost", "runner_lost")
        assert await here.events() == before, "it tells nothing any more"
        assert "Traceback" not in here.log.read_text()
