"""An OTLP receiver on loopback that reads what it is sent, and a gateway started on the command line beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.gateway.watched import until


@dataclass(frozen=True, slots=True)
class Received:
    """One span, as a receiver reads it."""

    span: Span
    resource: Mapping[str, str]

    @property
    def attributes(self) -> dict[str, str]:
        return {one.key: one.value.string_value for one in self.span.attributes}

    @property
    def ids(self) -> tuple[str, str, str]:
        """Trace, span and parent."""
        return self.span.trace_id.hex(), self.span.span_id.hex(), self.span.parent_span_id.hex()


@dataclass(slots=True)
class Receiver:
    """What came, and what is answered."""

    url: str = ""
    status: int = 200
    spans: list[Received] = field(default_factory=list[Received])
    bodies: list[bytes] = field(default_factory=list[bytes])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    go_on: anyio.Event = field(default_factory=anyio.Event)

    async def take(self, request: web.Request) -> web.Response:
        """Read one export; answer when told to go on."""
        body = await request.read()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        await self.go_on.wait()
        read = ExportTraceServiceRequest.FromString(body)
        for group in read.resource_spans:
            resource = {one.key: one.value.string_value for one in group.resource.attributes}
            self.spans += (Received(span, resource) for scope in group.scope_spans for span in scope.spans)
        return web.Response(status=self.status)

    async def having(self, count: int) -> list[Received]:
        """The spans, once there are so many."""
        await until(lambda: len(self.spans) >= count)
        return self.spans


@asynccontextmanager
async def receiver(*, is_slow: bool = False) -> AsyncGenerator[Receiver]:
    """A receiver on a free port; a slow one answers nothing until its ``go_on`` is set."""
    made = Receiver()
    if not is_slow:
        made.go_on.set()
    app = web.Application()
    app.router.add_post("/v1/traces", made.take)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        made.go_on.set()
        await runner.cleanup()


@dataclass(slots=True)
class Gateway:
    """A gateway that somebody started on the command line."""

    folder: Path
    process: subprocess.Popen[str]
    url: str
    said: str = ""
    """What it wrote to stderr, once it has ended."""

    async def stop(self) -> int:
        """Tell it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        _, self.said = await anyio.to_thread.run_sync(lambda: self.process.communicate(timeout=30))
        return self.process.returncode


def environment(folder: Path, **given: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    places = {"OUTFITTER_STATE": str(folder / "state"), "OUTFITTER_CATALOG": str(folder / "outfitter")}
    return {**kept, **places, "OTEL_BSP_SCHEDULE_DELAY": "50", **given}


def write_catalog(folder: Path, url: str, *rules: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
    """One server ``x`` and one agent ``a`` that has it."""
    agent = {"name": "a", "mcpServers": {"x": {"ref": "x", "headers": dict(headers or {})}}, "rules": list(rules)}
    for place, value in (("mcp-servers/x.json", {"name": "x", "url": url}), ("agents/a.json", agent)):
        path = folder / "outfitter" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


def issue_token(folder: Path) -> str:
    command = [sys.executable, "-m", "outfitter", "token", "issue", "a"]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=True
    ).stdout.strip()


def at_start(folder: Path, code: str) -> dict[str, str]:
    """Variables with which a Python process runs this code before anything else."""
    place = folder / "at_start"
    place.mkdir()
    (place / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(place)}


def begin(folder: Path, *args: str, **given: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "outfitter", "up", "--files", "--port", "0", *args]
    variables = environment(folder, **given)
    return subprocess.Popen(
        command, cwd=folder, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


@asynccontextmanager
async def started(folder: Path, *args: str, **given: str) -> AsyncGenerator[Gateway]:
    """A running gateway with these variables; it is killed if the block leaves it running."""
    process = begin(folder, *args, **given)
    file = folder / "state" / "gateway.json"
    try:
        await until(lambda: file.exists() or process.poll() is not None)
        yield Gateway(folder, process, f"http://127.0.0.1:{json.loads(file.read_text())['port']}")
    finally:
        if process.returncode is None:
            process.kill()
            process.communicate(timeout=30)
