"""The gateway against nginx, FastMCP's proxy and other gateways, side by side in one run.

Rounds take turns, and the middle one counts.

Everything is on in the gateway: tokens, filters, a rule on arguments, header injection, durable records. nginx forwards
and adds two headers. CPU per call is what the measured processes used, whatever else the machine did.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks.gateway_load import Found, Job
from benchmarks.gateway_peers import PEERS, start
from benchmarks.gateway_stage import (
    Stage,
    cpu_of,
    fastmcp,
    free_port,
    gateway,
    nginx,
    request,
    resident,
    stage,
    token_of,
    write_catalog,
)
from benchmarks.measure import Ratio

_ROUNDS, _SECONDS, _CROWD, _AGENTS = 5, 1.0, 64, 1000
_ALONE = ("no proxy", "nginx", "gateway", "FastMCP")


@dataclass(slots=True)
class Subject:
    """Something that answers calls."""

    name: str
    port: int
    pid: int
    requests: list[bytes]
    rates: list[float] = field(default_factory=list[float])
    cpus: list[float] = field(default_factory=list[float])
    alone: list[float] = field(default_factory=list[float])

    def round(self, connections: int, seconds: float) -> None:
        """Measure once."""
        before = cpu_of(self.pid)
        found = load(Job(self.port, self.requests, connections, seconds))
        assert found.count, f"{self.name} answers nothing"
        assert found.wrong == 0, f"{self.name}: {found}"
        if connections == 1:
            self.alone.append(found.p50)
            return
        self.rates.append(found.rate)
        self.cpus.append((cpu_of(self.pid) - before) / found.count * 1e6)

    @property
    def rate(self) -> float:
        """Requests per second."""
        return statistics.median(self.rates)

    @property
    def cpu(self) -> float:
        """Microseconds of CPU for a call."""
        return min(self.cpus)

    @property
    def p50(self) -> float:
        """Microseconds for a call, one at a time."""
        return min(self.alone)


def load(job: Job) -> Found:
    """Run the load generator as a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gateway_load"]
    done = subprocess.run(command, input=msgspec.json.encode(job), capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=Found)


def set_up(one: Stage) -> list[Subject]:
    """Everything that is compared, started and warm."""
    small, large = free_port(), free_port()
    server = [sys.executable, "-m", "benchmarks.gateway_upstream"]
    pid = one.start(*server, str(small), "10", port=small)
    one.start(*server, str(large), "5000", port=large)
    servers: dict[str, dict[str, object]] = {
        "small": {"url": f"http://127.0.0.1:{small}/mcp"},
        "large": {"url": f"http://127.0.0.1:{large}/mcp"},
        "pipe": {"command": sys.executable, "args": [*server[1:], "stdio"], "cwd": str(Path.cwd())},
    }
    crowd = [f"agent{number}" for number in range(_AGENTS)]
    write_catalog(
        one.folder,
        servers,
        {"small": "small", "strict": "small", "large": "large", "pipe": "pipe"} | dict.fromkeys(crowd, "small"),
    )
    port, gate = gateway(one)
    double, crew = gateway(one, "--workers", "2", state="double")

    def calls(*agents: str, at: int = port) -> list[bytes]:
        return [request(at, f"/mcp/{agent}", f"{_server_of(agent)}_echo", token_of(agent)) for agent in agents]

    subjects = [
        Subject("no proxy", small, pid, [request(small, "/mcp", "echo")]),
        Subject("gateway", port, gate, calls("small")),
        Subject("gateway, 5,000 tools", port, gate, calls("large")),
        Subject(f"gateway, {_AGENTS:,} agents", port, gate, calls(*crowd)),
        Subject("gateway, stdio server", port, gate, calls("pipe")),
        Subject("gateway, rule on arguments", port, gate, calls("strict")),
        Subject("gateway, two workers", double, crew, calls("small", at=double)),
    ]
    for name, found in (("nginx", nginx(one, small)), ("FastMCP", fastmcp(one, small))):
        if found is not None:
            subjects.insert(1, Subject(name, found[0], found[1], [request(found[0], "/mcp", "echo")]))
    for peer in PEERS:
        started = start(one, peer)
        if started is not None:
            subjects.append(Subject(peer.name, *started))
    for subject in subjects:
        load(Job(subject.port, subject.requests, 8, 0.5, at_least=2 * len(subject.requests)))
    return subjects


def _server_of(agent: str) -> str:
    return agent if agent in {"large", "pipe"} else "small"


def compare() -> dict[str, Subject]:
    """Every subject, measured."""
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as one:
        subjects = set_up(one)
        for _ in range(_ROUNDS):
            for subject in subjects:
                subject.round(_CROWD, _SECONDS * (3 if subject.name == "FastMCP" else 1))
        for _ in range(_ROUNDS):
            for subject in subjects:
                if subject.name in _ALONE:
                    subject.round(1, 0.5)
        memory = resident(next(subject.pid for subject in subjects if subject.name == "gateway"))
    _show(subjects, memory)
    return {subject.name: subject for subject in subjects}


def _show(subjects: list[Subject], memory: float) -> None:
    base = next((subject for subject in subjects if subject.name == "nginx"), subjects[0])
    columns = ("requests/s", f"of {base.name}", "CPU µs", f"of {base.name}", "p50 µs, one client")
    print(f"\n| {_CROWD} clients | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for one in subjects:
        rates = f"{one.rate:.0f} | {one.rate / base.rate:.3f}"
        costs = f"{one.cpu:.0f} | {one.cpu / base.cpu:.2f}"
        print(f"| {one.name} | {rates} | {costs} | {f'{one.p50:.0f}' if one.alone else ''} |")
    print(f"\nThe gateway holds {memory:.0f} MiB after {_AGENTS:,} agents.\n", flush=True)


def measure() -> Iterator[Ratio]:
    """The goals as ratios of seconds per call."""
    found = compare()
    gate = found["gateway"]
    if "nginx" in found:
        other = found["nginx"]
        yield Ratio("a call through the gateway, 64 clients", 1 / gate.rate, 1 / other.rate, "nginx", 2.5)
        direct = found["no proxy"].p50
        added = max(gate.p50 - direct, 0.0), max(other.p50 - direct, 1.0)
        yield Ratio("latency added by the gateway, one client", added[0] / 1e6, added[1] / 1e6, "by nginx", 2.0)
    if "FastMCP" in found:
        yield Ratio("a call through the gateway", 1 / gate.rate, 1 / found["FastMCP"].rate, "FastMCP's proxy", 0.02)
    for peer in PEERS:
        if peer.name in found:
            yield Ratio("a call through the gateway", 1 / gate.rate, 1 / found[peer.name].rate, peer.name, 0.2)
    for name in ("gateway, 5,000 tools", f"gateway, {_AGENTS:,} agents"):
        yield Ratio(name, 1 / found[name].rate, 1 / gate.rate, "gateway, 10 tools", 1.1)
    stdio = found["gateway, stdio server"]
    yield Ratio("a call to a stdio server", 1 / stdio.rate, 1 / gate.rate, "an HTTP server", 1.25)


if __name__ == "__main__":
    compare()
