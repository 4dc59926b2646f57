"""The registry's API against a bare route, at two sizes, and how soon ``outfitter up`` answers.

The bare route is Starlette on the same uvicorn, returning the same bytes without asking who wants them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench_gateway import load
from benchmarks.gateway_load import Job
from benchmarks.gateway_stage import Stage, free_port, stage, wait_for
from benchmarks.measure import Ratio
from benchmarks.two_gateways import measure_news
from outfitter.storage import Put

_ROUNDS, _SECONDS, _CLIENTS = 5, 1.0, 16
_SERVERS, _AGENTS, _TENTH = 10_000, 1_000, 10
_BARE = """
import sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

body = open(sys.argv[1], "rb").read()

async def answer(request):
    return Response(body, media_type="application/json")

app = Starlette(routes=[Route("/agents/{name}", answer)])
uvicorn.run(app, port=int(sys.argv[2]), loop="uvloop", http="httptools", access_log=False, log_level="error")
"""
_IMPORTS = "import starlette, sqlalchemy, uvicorn"


@dataclass(frozen=True, slots=True)
class Place:
    """A registry of some size, its service and a token for it."""

    port: int
    pid: int
    token: str

    def get(self, path: str) -> bytes:
        """A whole request."""
        return _get(self.port, path, self.token)


def _get(port: int, path: str, token: str = "") -> bytes:
    named = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n{named}\r\n".encode()


async def _fill(state: Path, servers: int, agents: int) -> str:
    from outfitter.coordinator import open_access
    from outfitter.storage import KeyRing, open_database

    async with open_database(f"sqlite:///{state / 'registry.sqlite'}", KeyRing(state / "registry.keys")) as database:
        async with database.registry.changing("bench") as writing:
            await writing.put_all([_server(number) for number in range(servers)])
            await writing.put_all([_agent(number, servers) for number in range(agents)])
        async with open_access(database.tokens) as access:
            token, _ = await access.tokens.issue("viewer", by="bench")
    return token


def _server(number: int) -> Put:
    schema = {"X-Team": {"type": "string"}, "X-Scope": {"type": "json"}}
    document = {
        "id": f"server-{number}", "name": f"Server {number}", "url": f"http://localhost:9501/mcp/{number}",
        "header_schema": schema, "default_headers": {"X-Team": "red"},
    }  # fmt: skip
    return Put("mcp-servers", f"server-{number}", document)


def _agent(number: int, servers: int) -> Put:
    used = [(number * 10 + step) % servers for step in range(10)]
    uses = {f"s{step}": {"ref": f"server-{one}", "headers": {"X-Scope": {"n": step}}} for step, one in enumerate(used)}
    return Put("agents", f"agent-{number}", {"name": f"agent-{number}", "mcpServers": uses})


def _start(one: Stage, state: Path) -> tuple[int, int]:
    port = free_port()
    places = {"OUTFITTER_STATE": str(state), "OUTFITTER_CATALOG": str(one.folder / "none")}
    return port, one.start(sys.executable, "-m", "outfitter", "up", "--port", str(port), port=port, **places)


def _place(one: Stage, name: str, servers: int, agents: int) -> Place:
    state = one.folder / name
    state.mkdir()
    token = asyncio.run(_fill(state, servers, agents))
    port, pid = _start(one, state)
    place = Place(port, pid, token)
    _ask(port, place.get("/agents/agent-1"))
    return place


def _ask(port: int, request: bytes) -> bytes:
    """The answer, as soon as there is one that is not 503."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(request)
            head, _, body = client.recv(1 << 16).partition(b"\r\n\r\n")
            if head.startswith(b"HTTP/1.1 200"):
                return body
        time.sleep(0.005)
    raise RuntimeError("no answer")


def _rate(port: int, request: bytes) -> float:
    found = load(Job(port, [request], _CLIENTS, _SECONDS, expects=b""))
    assert found.wrong == 0, found
    return found.rate


def measure() -> Iterator[Ratio]:
    """Everything of the API."""
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as one:
        small = _place(one, "small", _SERVERS // _TENTH, _AGENTS // _TENTH)
        large = _place(one, "large", _SERVERS, _AGENTS)
        yield _against_bare(one, large)
        for what, path in (
            ("list of servers", "/mcp-servers?limit=50"),
            ("search of servers", "/mcp-servers?q=server-77&limit=50"),
            ("blueprint of an agent", "/agents/agent-7"),
        ):
            rates: tuple[list[float], list[float]] = ([], [])
            for _ in range(_ROUNDS):
                for place, found in zip((large, small), rates, strict=True):
                    found.append(_rate(place.port, place.get(path)))
            cost = [1 / statistics.median(found) for found in rates]
            yield Ratio(f"{what}, {_SERVERS:,} servers and {_AGENTS:,} agents", cost[0], cost[1], "a tenth", 3.0)
        yield measure_news(one)
        yield _start_up(one)


def _against_bare(one: Stage, place: Place) -> Ratio:
    body = one.folder / "body"
    body.write_bytes(_ask(place.port, place.get("/agents/agent-7")))
    json.loads(body.read_bytes())
    script, port = one.folder / "bare.py", free_port()
    script.write_text(_BARE)
    one.start(sys.executable, str(script), str(body), str(port), port=port)
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        rates[0].append(_rate(place.port, place.get("/agents/agent-7")))
        rates[1].append(_rate(port, _get(port, "/agents/agent-7")))
    ours, bare = (1 / statistics.median(found) for found in rates)
    return Ratio("GET /agents/{name}, resolved", ours, bare, "a Starlette route with the same bytes", 2.0)


def _start_up(one: Stage) -> Ratio:
    """The second start of a registry, to its first answer, against the bare imports."""
    state, times = one.folder / "start", list[float]()
    state.mkdir()
    yardsticks: list[float] = []
    for number in range(4):
        began = time.perf_counter()
        port = free_port()
        places = {"OUTFITTER_STATE": str(state), "OUTFITTER_CATALOG": str(one.folder / "none")}
        process = subprocess.Popen(
            [sys.executable, "-m", "outfitter", "up", "--open", "--port", str(port)],
            env={**os.environ, **places}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_for(port, process)
        _ask(port, _get(port, "/mcp-servers"))
        if number:
            times.append(time.perf_counter() - began)
        process.terminate()
        process.wait(20)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", _IMPORTS], check=True)
        yardsticks.append(time.perf_counter() - began)
    return Ratio("outfitter up, to its first answer", min(times), min(yardsticks), f"python -c '{_IMPORTS}'", 3.0)


if __name__ == "__main__":
    for ratio in measure():
        print(f"{ratio.what}: {ratio.value:.2f} (limit {ratio.limit:g})", flush=True)
