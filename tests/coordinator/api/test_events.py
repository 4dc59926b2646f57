"""Events as they happen, and again for those who come back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.coordinator.api.kit import Served, service

pytestmark = pytest.mark.anyio

SERVER = {"id": "s", "url": "http://localhost:1/mcp"}


class Listening:
    """A stream of events, read piece by piece."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def piece(self) -> dict[str, str]:
        """The fields of the next piece; a comment has no name."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(10):
            while line := (await self.response.content.readline()).decode():
                if line == "\n":
                    return fields
                name, _, value = line.removesuffix("\n").partition(": ")
                fields[name] = value
        raise EOFError

    async def end(self) -> None:
        """Read on until the other side ends it."""
        with suppress(EOFError):
            while True:
                await self.piece()

    async def event(self) -> tuple[int, Any]:
        """The next event: its number and what it says."""
        while "id" not in (piece := await self.piece()):
            pass
        assert piece["event"] == json.loads(piece["data"])["kind"]
        return int(piece["id"]), json.loads(piece["data"])


@asynccontextmanager
async def listening(served: Served, query: str = "", **headers: str) -> AsyncGenerator[Listening]:
    """Listen as long as the block lasts."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    sent["authorization"] = f"Bearer {served.token}"
    async with served.session.get(f"{served.url}/events{query}", headers=sent) as response:
        assert response.status == 200, await response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        stream = Listening(response)
        assert "retry" in await stream.piece()
        yield stream


@pytest.mark.promise("API-EVENTS")
async def test_events_are_heard_as_they_happen_and_again_after_a_number(served: Served) -> None:
    async with listening(served) as first:
        await served.must("/mcp-servers", SERVER)
        await served.must("/agents", {"name": "a"})
        run = (await served.must("/runs", {"agent_name": "a"})).json
        heard = [await first.event() for _ in range(3)]
    assert [event["kind"] for _, event in heard] == ["entry.created", "entry.created", "run.created"]
    assert heard[2][1]["subject"] == f"runs/{run['id']}"
    numbers = [number for number, _ in heard]
    async with listening(served, last_event_id=str(numbers[0])) as again:
        assert [await again.event() for _ in range(2)] == heard[1:]
    async with listening(served, f"?after={numbers[1]}") as again:
        assert await again.event() == heard[2]
        await served.post(f"/runs/{run['id']}/stop")
        number, event = await again.event()
        assert number > numbers[2]
        assert event["kind"].startswith("run.")


async def test_who_comes_back_from_elsewhere_is_told_of_the_gap(served: Served) -> None:
    await served.must("/mcp-servers", SERVER)
    async with listening(served, last_event_id="999999") as stream:
        piece = await stream.piece()
        assert piece["event"] == "gap"
        assert json.loads(piece["data"])["newest"] >= 1
    for wrong in ("x", "-1", "1" * 40):
        assert (await served.get("/events", last_event_id=wrong)).code == "bad_event_id"


@pytest.mark.promise("API-EVENTS")
async def test_a_silent_stream_shows_that_it_lives_and_ends_with_its_token(tmp_path: Path) -> None:
    async with service(tmp_path, beat_seconds=0.05) as served:
        made = (await served.must("/tokens", {"role": "viewer"})).json
        async with listening(replace(served, token=made["token"])) as stream:
            assert "" in await stream.piece()
            assert (await served.ask("DELETE", f"/tokens/{made['id']}")).status == 204
            await stream.end()


async def test_so_many_may_listen_and_a_place_is_free_again(tmp_path: Path) -> None:
    async with service(tmp_path, beat_seconds=0.05) as served:
        served.office.listeners.most = 1
        async with listening(served):
            full = await served.get("/events")
            assert (full.status, full.code) == (503, "too_many_listeners")
            assert full.headers["retry-after"] == "5"
        async with asyncio.timeout(10):
            while (await served.ask("HEAD", "/events")).status == 503:
                pass
        async with listening(served) as stream:
            assert "" in await stream.piece()


async def test_streams_end_when_the_service_closes(served: Served) -> None:
    async with listening(served) as stream:
        served.office.closing.set()
        await stream.end()
    reply = await served.get("/ready")
    assert (reply.status, reply.code) == (503, "not_ready")


async def test_only_those_who_may_listen_do(served: Served) -> None:
    await served.must("/agents", {"name": "a"})
    agent = await served.as_role("agent", "a")
    bound = await served.as_role("runner", "a")
    assert (await agent.get("/events")).status == 403
    assert (await bound.get("/events")).status == 403
