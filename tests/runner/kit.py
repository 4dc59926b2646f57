"""A coordinator, runners and agents as processes, as somebody starts them on the command line."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import anyio

from tests.app.kit import Place, Up, ended, until

PATIENCE = 120.0
AGENT = Path(__file__).with_name("agent_program.py")
_ENDED = {"done", "failed", "stopped", "lost"}


@dataclass(slots=True)
class RunnerProcess:
    """A running ``outfitter runner``."""

    process: subprocess.Popen[bytes]
    log_file: Path

    def log(self) -> str:
        """What it has said so far."""
        return self.log_file.read_text()

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it; its exit code."""
        self.process.send_signal(how)
        return await ended(self.process)


@dataclass(slots=True)
class Team:
    """A running coordinator with a token for runners."""

    up: Up
    token: str
    names: list[str] = field(default_factory=list[str])

    @property
    def folder(self) -> Path:
        """Where everything is."""
        return self.up.place.folder

    async def agent(self, name: str = "worker", servers: Mapping[str, Any] | None = None, **executor: Any) -> None:  # noqa: ANN401 - fields of an executor
        """An agent that is executed by the program of these tests, approved."""
        command = {"type": "command", "command": sys.executable, "args": [str(AGENT)]}
        document = {"name": name, "system_prompt": "Work.", "mcpServers": servers or {}}
        status, body, _ = await self.up.api("POST", "/agents", {**document, "executor": {**command, **executor}})
        assert status == 201, body
        status, body, _ = await self.up.api("POST", f"/agents/{name}/approve", version=1)
        assert status == 200, body

    async def run(self, prompt: str, agent: str = "worker", **more: object) -> str:
        """Start a run; its id."""
        status, body = await self._ask("POST", "/runs", {"agent_name": agent, "prompt": prompt, **more})
        assert status == 201, body
        return str(body["id"])

    async def _ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and content of an answer; of several workers one may still be opening the registry."""
        with anyio.fail_after(90):
            while True:
                status, found, _ = await self.up.api(method, path, body)
                if status != 503:
                    return status, found

    async def look(self, run_id: str) -> dict[str, Any]:
        """The run as it is now."""
        status, body = await self._ask("GET", f"/runs/{run_id}")
        assert status == 200, body
        return body

    async def events(self, run_id: str) -> list[dict[str, Any]]:
        """What a run has told."""
        found: list[dict[str, Any]] = []
        while True:
            after = found[-1]["seq"] if found else 0
            status, body = await self._ask("GET", f"/runs/{run_id}/events?after={after}&limit=500")
            assert status == 200, body
            found += body["events"]
            if body["next"] is None:
                return found

    async def end_of(self, run_id: str, state: str | None = None) -> dict[str, Any]:
        """The run once it has ended, or is in this state; a coordinator that is away is waited for."""
        with anyio.fail_after(PATIENCE):
            while True:
                try:
                    found = await self.look(run_id)
                except aiohttp.ClientError:
                    found = {"state": "away"}
                if found["state"] == state or (state is None and found["state"] in _ENDED):
                    return found
                await anyio.sleep(0.05)

    async def until_told(self, run_id: str, kind: str) -> dict[str, Any]:
        """The first event of this type."""
        with anyio.fail_after(PATIENCE):
            while True:
                for event in await self.events(run_id):
                    if event["type"] == kind:
                        return event
                await anyio.sleep(0.05)

    def begin(self, *args: str, name: str = "r1", state: Path | None = None) -> RunnerProcess:
        """Start a runner; what it says goes to a log."""
        log_file = self.folder / f"{name}-{len(self.names)}.log"
        self.names.append(name)
        environment = {**self.up.place.environment, "OUTFITTER_TOKEN": self.token, "MY_KEY_HERE": "my-own-secret"}
        if state is not None:
            environment["OUTFITTER_STATE"] = str(state)
        command = [
            sys.executable,
            "-m",
            "outfitter",
            "runner",
            "--server",
            self.up.url,
            "--id",
            name,
            "--no-orchestrator",
        ]
        with log_file.open("wb") as log:
            process = subprocess.Popen([*command, *args], cwd=self.folder, env=environment, stdout=log, stderr=log)
        return RunnerProcess(process, log_file)

    @contextmanager
    def runner(self, *args: str, name: str = "r1", state: Path | None = None) -> Generator[RunnerProcess]:
        """A runner; it is killed if the block leaves it running."""
        started = self.begin(*args, name=name, state=state)
        try:
            yield started
        finally:
            started.process.kill()
            started.process.wait(60)


@asynccontextmanager
async def team(folder: Path, *args: str, variables: Mapping[str, str] | None = None) -> AsyncGenerator[Team]:
    """A coordinator with a runner's token."""
    place = Place(folder, variables or {})
    async with place.up(*args) as up:
        yield await team_of(up)


async def team_of(up: Up) -> Team:
    """The same, of a coordinator that runs already."""
    status, body, _ = await up.api("POST", "/tokens", {"role": "runner"})
    assert status == 201, body
    return Team(up, body["token"])


def marked(run_id: str) -> list[int]:
    """The processes of a run that live, wherever they have gone."""
    found: list[int] = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdecimal() and f"OUTFITTER_RUN_ID={run_id}\0".encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def lives(pid: int) -> bool:
    """Whether there is such a process, and not only its zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until_gone(is_there: Callable[[], object]) -> None:
    """Return when something is no longer there."""
    await until(lambda: not is_there())
