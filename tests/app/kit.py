"""``outfitter up`` with its registry, as somebody starts it on the command line, and what it answers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import anyio

from tests.gateway.kit import Raw

ECHO: dict[str, object] = {"name": "echo", "arguments": {"text": "hi"}}
_PATIENCE = 90.0


@dataclass(slots=True)
class Up:
    """A running ``outfitter up``, and whoever asks it."""

    place: Place
    process: subprocess.Popen[bytes]
    url: str
    http: aiohttp.ClientSession
    token: str | None = None

    async def api(
        self, method: str, path: str, body: object = None, *, version: int | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, content and headers of an answer of the API."""
        headers = {} if self.token is None else {"authorization": f"Bearer {self.token}"}
        if version is not None:
            headers["if-match"] = f'"{version}"'
        async with self.http.request(method, f"{self.url}{path}", json=body, headers=headers) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text[:1] in ("{", "[") else text, answer.headers.copy()

    async def page(self, path: str) -> tuple[int, str]:
        """Status and text of a page."""
        async with self.http.get(f"{self.url}{path}") as answer:
            return answer.status, await answer.text()

    async def tools(self, agent: str, token: str | None = None) -> tuple[int, Any]:
        """What the endpoint of an agent lists."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return await Raw(f"{self.url}/mcp/{agent}", self.http, headers).modern("tools/list")

    async def call(self, agent: str) -> tuple[int, Any]:
        """What an agent's call of the echo tool answers."""
        return await Raw(f"{self.url}/mcp/{agent}/x", self.http).modern("tools/call", ECHO)

    def log(self) -> str:
        """What it has said so far."""
        return self.place.log.read_text()

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it; its exit code."""
        self.process.send_signal(how)
        return await ended(self.process)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a gateway lives: its state, its catalog folder, its variables."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def state(self) -> Path:
        """What it remembers."""
        return self.folder / "state"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder / "up.log"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its processes."""
        catalog = str(self.folder / "outfitter")
        return {**os.environ, "OUTFITTER_STATE": str(self.state), "OUTFITTER_CATALOG": catalog, **self.variables}

    def write(self, path: str, value: Mapping[str, Any] | str) -> Path:
        """Write a file of the catalog folder."""
        file = self.folder / "outfitter" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_name(f".{file.name}")
        staged.write_text(value if isinstance(value, str) else json.dumps(value))
        staged.replace(file)
        return file

    def write_catalog(self, url: str, *agents: str) -> None:
        """A server ``x`` and agents that have it."""
        self.write("mcp-servers/x.json", {"name": "x", "url": url})
        for agent in agents or ("a",):
            self.write(f"agents/{agent}.json", {"name": agent, "mcpServers": {"x": {"ref": "x"}}})

    def command(self, *args: str) -> subprocess.CompletedProcess[str]:
        """What a command says."""
        command = [sys.executable, "-m", "outfitter", *args]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False, timeout=300
        )

    def begin(self, *args: str) -> subprocess.Popen[bytes]:
        """Start it; what it says goes to the log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.state / "gateway.json").unlink(missing_ok=True)
        command = [sys.executable, "-m", "outfitter", "up", "--port", "0", *args]
        with self.log.open("wb") as log:
            return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=log, stderr=log)

    @asynccontextmanager
    async def up(self, *args: str, token: str | None = None) -> AsyncGenerator[Up]:
        """A gateway that listens; it is killed if the block leaves it running. Asked with its first admin token."""
        process, news = self.begin(*args), self.state / "gateway.json"
        try:
            await until(lambda: news.exists() or process.poll() is not None)
            assert process.poll() is None, self.log.read_text()
            url = f"http://127.0.0.1:{json.loads(news.read_text())['port']}"
            await until(lambda: "Listening" in self.log.read_text())
            found = re.search(r"oft_first_\S+", self.log.read_text())
            async with aiohttp.ClientSession() as http:
                yield Up(self, process, url, http, token or (None if found is None else found[0]))
        finally:
            process.kill()
            await ended(process)


async def until(is_so: Callable[[], bool]) -> None:
    """Return when something is so."""
    with anyio.fail_after(_PATIENCE):
        while not is_so():  # noqa: ASYNC110 - another process makes it so
            await anyio.sleep(0.02)


async def until_answer(ask: Callable[[], Any], wanted: int, seconds: float = _PATIENCE) -> float:
    """How long it took until an answer had this status."""
    began = anyio.current_time()
    with anyio.fail_after(seconds):
        while True:
            with suppress(aiohttp.ClientError):
                if (await ask())[0] == wanted:
                    return anyio.current_time() - began
            await anyio.sleep(0.02)


async def ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process that is about to end."""
    await until(lambda: process.poll() is not None)
    return process.returncode
