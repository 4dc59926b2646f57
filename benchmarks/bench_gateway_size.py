"""How much the gateway holds, and how soon it answers: 100 agents with 20 servers each, every one of them called."""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench_gateway import load
from benchmarks.gateway_load import Job
from benchmarks.gateway_stage import Stage, free_port, gateway, request, resident, stage, token_of, write_catalog
from benchmarks.measure import Ratio

_AGENTS, _SERVERS, _MOST_MIB, _SOON = 100, 20, 80.0, 1.0


def _set_up(one: Stage) -> None:
    back = free_port()
    one.start(sys.executable, "-m", "benchmarks.gateway_upstream", str(back), "10", port=back)
    servers: dict[str, dict[str, object]] = {
        f"s{number}": {"url": f"http://127.0.0.1:{back}/mcp/{number}"} for number in range(_SERVERS)
    }
    write_catalog(one.folder, servers, {f"agent{number}": list(servers) for number in range(_AGENTS)})


def measure() -> Iterator[Ratio]:
    """Memory after every agent has called every server, and the time from start to the first answer."""
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as one:
        _set_up(one)
        what = f"held by {_AGENTS} agents with {_SERVERS} servers"
        yield Ratio(f"{what}, the gateway alone", _held(one, "alone", "--files"), _MOST_MIB, "80", 1.0, "MiB")
        yield Ratio(f"{what}, with the registry", _held(one, "both"), _MOST_MIB, "80", 2.0, "MiB")
        for name, args in (("the gateway alone", ("--files",)), ("with the registry", ())):
            times = [_time_to_answer(one, *args) for _ in range(4)]
            yield Ratio(f"from start to the first answered call, {name}", min(times[1:]), _SOON, "one second", 1.0)


def _held(one: Stage, state: str, *args: str) -> float:
    port, pid = gateway(one, *args, state=state)
    calls = [
        request(port, f"/mcp/agent{agent}", f"s{server}_echo", token_of(f"agent{agent}"))
        for agent in range(_AGENTS)
        for server in range(_SERVERS)
    ]
    found = load(Job(port, calls, 8, 0.5, at_least=2 * len(calls)))
    assert found.wrong == 0, found
    return resident(pid)


def _time_to_answer(one: Stage, *args: str) -> float:
    """A start with the state that the last one has left."""
    began = time.perf_counter()
    port, _ = gateway(one, *args)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(request(port, "/mcp/agent0/s0", "echo", token_of("agent0")))
        said = client.recv(1 << 16)
    took = time.perf_counter() - began
    assert said.startswith(b"HTTP/1.1 200"), said
    process = one.processes.pop()
    process.terminate()
    process.wait(20)
    return took
