"""``outfitter up`` killed: in the middle of writes, of runs and of a migration, on both databases."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from tests.app.kit import Place, Up, ended, until, until_answer
from tests.storage.registry.olden import make_olden
from tests.storage.registry.places import ROOT

pytestmark = pytest.mark.anyio
NOWHERE = "http://127.0.0.1:9/mcp"
_DYING = (
    "import sys; from tests.storage.registry.child import kill_at; kill_at(int(sys.argv.pop(1)));"
    "from outfitter.cli import main; main()"
)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A machine whose registry is a file, or is in a PostgreSQL."""
    if request.param == "sqlite":
        return Place(tmp_path)
    return Place(tmp_path, {"OUTFITTER_DATABASE": request.getfixturevalue("postgres_url")})


@pytest.mark.promise("KILL-LOSES-NOTHING")
async def test_kill_9_loses_no_write_that_was_acknowledged(place: Place) -> None:
    place.write_catalog(NOWHERE)
    kept: list[str] = []
    admin = None
    for turn in range(3):
        async with place.up(token=admin) as up:
            admin = up.token
            await until_answer(partial(up.api, "GET", "/agents"), 200)
            wanted = len(kept) + random.randrange(3, 12)
            async with anyio.create_task_group() as group:
                for writer in range(3):
                    group.start_soon(_write, up, f"t{turn}w{writer}", kept)
                await until(lambda wanted=wanted: len(kept) >= wanted)
                up.process.send_signal(signal.SIGKILL)
    async with place.up(token=admin) as up:
        await until_answer(partial(up.api, "GET", "/agents"), 200)
        found = [(await up.api("GET", f"/agents/{name}"))[0] for name in kept]
    assert found == [200] * len(kept)


async def _write(up: Up, prefix: str, kept: list[str]) -> None:
    """Make agents until nobody answers; ``kept`` are those that were acknowledged."""
    with suppress(aiohttp.ClientError, OSError):
        for number in itertools.count():
            status, _, _ = await up.api("POST", "/agents", {"name": f"{prefix}n{number}"})
            assert status == 201
            kept.append(f"{prefix}n{number}")


@pytest.mark.promise("F19")
async def test_a_run_goes_on_when_the_service_is_killed_and_every_event_is_heard_once(place: Place) -> None:
    place.write_catalog(NOWHERE)
    heard: list[dict[str, Any]] = []
    admin = None
    asked = {"type": "start_session", "agent_name": "a", "prompt": "go"}
    started: list[str] = []
    for _ in range(2):
        async with place.up(token=admin) as up, anyio.create_task_group() as group:
            admin = up.token
            await until_answer(partial(up.api, "GET", "/agents"), 200)
            wanted = len(heard) + random.randrange(1, 4)  # of at least three that come; the others are heard later
            group.start_soon(_listen, up, heard)
            for run in started:
                _, found, _ = await up.api("GET", f"/runs/{run}")
                assert found["state"] == "pending", "it waits for its runner as before"
            for _ in range(3):
                status, found, _ = await up.api("POST", "/runs", asked)
                assert status == 201, found
                started.append(found["id"])
            await until(lambda wanted=wanted: len(heard) >= wanted)
            up.process.send_signal(signal.SIGKILL)
    async with place.up(token=admin) as up, anyio.create_task_group() as group:
        await until_answer(partial(up.api, "GET", "/agents"), 200)
        group.start_soon(_listen, up, heard)
        stopped = [(await up.api("POST", f"/runs/{run}/stop"))[1]["state"] for run in started]
        assert stopped == ["stopped"] * 6
        await until(lambda: len([event for event in heard if event["kind"] == "run.stopped"]) == 6)
        group.cancel_scope.cancel()
    numbers = [event["seq"] for event in heard]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "none twice, none left out"
    for kind in ("run.created", "run.stopped"):
        assert sorted(event["subject"] for event in heard if event["kind"] == kind) == sorted(
            f"runs/{run}" for run in started
        )


async def _listen(up: Up, heard: list[dict[str, Any]]) -> None:
    """Hear events from where the last listener stopped, until nobody sends any."""
    after = heard[-1]["seq"] if heard else 0
    headers = {"authorization": f"Bearer {up.token}", "last-event-id": str(after)}
    with suppress(aiohttp.ClientError, OSError):
        async with up.http.get(f"{up.url}/events", headers=headers) as answer:
            async for line in answer.content:
                heard += [json.loads(line[6:])] if line.startswith(b"data: ") else []


@pytest.mark.promise("F34")
async def test_a_start_that_is_killed_in_a_migration_goes_on_at_the_next_start(place: Place) -> None:
    place.state.mkdir(parents=True)
    make_olden(place.variables.get("OUTFITTER_DATABASE") or f"sqlite:///{place.state / 'registry.sqlite'}", "0001")
    for step in (1, 4, 9):  # each start goes on from the last whole step
        assert await ended(_begin_dying(place, step)) == -signal.SIGKILL, place.log.read_text()
    async with place.up() as up:
        status, found, _ = await up.api("GET", "/mcp-servers/kept")
        assert (status, found["id"]) == (200, "kept")
        assert (await up.api("POST", "/agents", {"name": "b"}))[0] == 201
        assert await up.stop() == 0


def _begin_dying(place: Place, step: int) -> subprocess.Popen[bytes]:
    """The service, which dies at its n-th statement that writes."""
    command = [sys.executable, "-c", _DYING, str(step), "up", "--port", "0"]
    with place.log.open("wb") as log:
        return subprocess.Popen(command, cwd=ROOT, env=place.environment, stdout=log, stderr=log)
