"""A real coordinator with its API on a port, an orchestrator in front of it, and agents that call its tools.

Runs are executed by the test itself: ``play`` is the runner.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import anyio
from yarl import URL

from outfitter.basics import Secret
from outfitter.runner import GivenToken, Orchestrator, OrchestratorOptions
from tests.coordinator.api.kit import Served, service
from tests.gateway.kit import Raw

PATIENCE = 90.0
AGENTS = ("lead", "worker", "helper", "clerk")


@dataclass(frozen=True, slots=True)
class Present:
    """Which runs are executed, where nobody has places to give."""

    named: Callable[[str], bool] = lambda _: True

    def is_active(self, run_id: str) -> bool:
        """Whether a run is."""
        return self.named(run_id)

    def waiting(self, run_id: str, other: object, *, is_pending: bool) -> AbstractContextManager[None]:
        """Nothing is given up."""
        del run_id, other, is_pending
        return nullcontext()


@dataclass(slots=True)
class Said:
    """What a tool answered."""

    is_error: bool
    text: str
    shown: dict[str, Any]

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """A field of the answer."""
        assert not self.is_error, self.text
        return self.shown[name]


@dataclass(slots=True)
class Stage:
    """A coordinator and an orchestrator."""

    served: Served
    orchestrator: Orchestrator
    http: aiohttp.ClientSession

    async def begin(self, agent: str = "lead", **more: object) -> str:
        """Somebody starts an agent, and a runner takes it up; its session."""
        run = (await self.served.must("/runs", {"agent_name": agent, "prompt": "go", **more})).json
        await take(self.served, run["id"])
        return run["session_id"]

    async def call(self, session: str, tool: str, **arguments: object) -> Said:
        """What a tool answers to a session, through the URL that was made for it."""
        url = self.orchestrator.url_for(session, await self.run_of(session))
        return await call(Raw(url, self.http, {"x-agent-session-id": session}), tool, arguments)

    async def run_of(self, session: str) -> str:
        """The run that a session has now; a session that is not known has some run, too."""
        found = await self.served.get(f"/sessions/{quote(session, safe='')}")
        return found.json["run_id"] if found.status == 200 else "run-1"

    async def play(self, session: str, state: str = "done", result: object = None, error: object = None) -> None:
        """Execute the run that a session has now, to its end."""
        await play(self.served, session, state, result, error)

    async def state(self, session: str) -> str:
        """The state of a session."""
        return (await self.served.get(f"/sessions/{session}")).json["state"]

    async def runs(self, session: str) -> list[dict[str, Any]]:
        """The runs of a session, oldest first."""
        listed = (await self.served.get("/runs?limit=500")).json["items"]
        return [run for run in reversed(listed) if run["session_id"] == session]

    async def children(self, session: str) -> list[str]:
        """The sessions below a session."""
        return (await self.served.get(f"/sessions/{session}")).json["children"]


async def take(served: Served, run_id: str) -> int:
    """A runner takes up a run; the attempt that it is."""
    begun = await served.post(f"/runs/{run_id}/begin", {"runner": "runner-1", "values": {}})
    assert begun.status == 200, begun.content
    return begun.json["attempt"]


async def play(served: Served, session: str, state: str, result: object = None, error: object = None) -> None:
    """A runner executes the run of a session to its end."""
    found = (await served.get(f"/sessions/{session}")).json
    attempt = await take(served, found["run_id"]) if found["state"] == "pending" else 1
    body = {"attempt": attempt, "state": state, "result": result, "error": error}
    ended = await served.post(f"/runs/{found['run_id']}/finish", body)
    assert ended.status == 200, ended.content


async def call(raw: Raw, tool: str, arguments: Mapping[str, object]) -> Said:
    """What a tool answers."""
    status, answer = await raw.modern("tools/call", {"name": tool, "arguments": dict(arguments)})
    assert status == 200, answer
    if isinstance(answer, str):  # it took long, and came as a stream
        answer = json.loads(answer.rpartition("data: ")[2])
    result = answer["result"]
    return Said(result.get("isError", False), result["content"][0]["text"], result.get("structuredContent") or {})


async def write_agents(served: Served, *agents: str) -> None:
    """Agents without any server."""
    for agent in agents:
        await served.must("/agents", {"name": agent, "description": f"the {agent}"})


@asynccontextmanager
async def orchestrating(
    served: Served,
    state: Path,
    *,
    url: str | None = None,
    is_active: Callable[[str], bool] = lambda _: True,
    **options: Any,  # noqa: ANN401 - of OrchestratorOptions
) -> AsyncGenerator[Orchestrator]:
    """An orchestrator with a token of the role runner."""
    runner = await served.as_role("runner")
    chosen = OrchestratorOptions(url or served.url, state, **options)
    async with Orchestrator(chosen, GivenToken(Secret(runner.token or "")), Present(is_active)) as orchestrator:
        yield orchestrator


@asynccontextmanager
async def stage(folder: Path, *agents: str, **options: Any) -> AsyncGenerator[Stage]:  # noqa: ANN401 - of OrchestratorOptions
    """A coordinator with these agents, and an orchestrator."""
    (folder / "registry").mkdir()
    async with service(folder / "registry") as served:
        await write_agents(served, *(agents or AGENTS))
        async with orchestrating(served, folder / "state", **options) as orchestrator:
            yield Stage(served, orchestrator, served.session)


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Return when something is so that nobody tells of."""
    with anyio.fail_after(PATIENCE):
        while not await is_so():  # noqa: ASYNC110 - nobody tells of it
            await anyio.sleep(0.02)


async def at_once() -> None:
    """Wait for nothing."""


@dataclass(slots=True)
class Cable:
    """A port that leads to a service as long as it has a target; it can lose the answer to one request."""

    target: str | None = None
    loses_answer_to: bytes | None = None
    """Part of a request whose answer does not come back."""
    carried_out: Callable[[], Awaitable[None]] = at_once
    """Returns when that request was carried out."""
    lost: int = 0
    url: str = ""
    _open: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    _deaf: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        if self.target is None:
            writer.close()
            return
        there = URL(self.target)
        far_reader, far_writer = await asyncio.open_connection(there.host, there.port)
        ends = {writer, far_writer}
        self._open |= ends
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask(reader, far_writer, writer))
                group.create_task(self._reply(far_reader, writer))
        finally:
            self._open -= ends

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                is_lost = self.loses_answer_to is not None and self.loses_answer_to in data
                if is_lost:
                    self.loses_answer_to = None
                    self._deaf.add(back)
                writer.write(data)
                await writer.drain()
                if is_lost:
                    await self.carried_out()
                    self.lost += 1
                    back.transport.abort()
        writer.close()

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if writer not in self._deaf:
                    writer.write(data)
                    await writer.drain()
        writer.close()

    def cut(self) -> None:
        """End every connection."""
        for writer in self._open:
            writer.transport.abort()


@asynccontextmanager
async def cable(target: str | None) -> AsyncGenerator[Cable]:
    """A port that leads to a service, whatever becomes of the service."""
    made = Cable(target)
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        made.cut()
