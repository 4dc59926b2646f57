"""What pins and budgets cost: two agents of one gateway on one server, with both and with neither, side by side.

Rounds take turns. CPU per call is what the loop of the gateway used, to the nanosecond, whatever else the machine did;
the middle of the ratios of neighbouring rounds counts.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench_gateway import Subject, load
from benchmarks.gateway_load import Job
from benchmarks.gateway_stage import Stage, free_port, gateway, request, stage, token_of, write_catalog
from benchmarks.measure import Ratio

_ROUNDS, _SECONDS, _CROWD = 100, 0.2, 64
_MUCH = 10**15
_DIFFERENT = 16
"""So many different calls are made in turn, by every client from another one on."""
_AGENTS = {"plain": "open", "bound": "held"}
"""With names that are equally long: they are in every record."""
_BUDGETS = {"calls_per_day": _MUCH, "bytes_per_day": _MUCH, "tokens_per_day": _MUCH, "repeats": 10**9}
LIMIT = 1.05


def set_up(one: Stage, *args: str) -> list[Subject]:
    """The plain agent and the governed one, warm."""
    port = free_port()
    one.start(sys.executable, "-m", "benchmarks.gateway_upstream", str(port), "10", port=port)
    url = f"http://127.0.0.1:{port}/mcp"
    servers: dict[str, dict[str, object]] = {
        "open": {"url": url, "pins": "off"},
        "held": {"url": url, "pins": "first_use"},
    }
    write_catalog(one.folder, servers, _AGENTS)
    path = one.folder / "outfitter" / "agents" / "bound.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "budgets": _BUDGETS}))
    gate, pid = gateway(one, *args)
    found = [
        Subject(agent, gate, pid, [request(gate, f"/mcp/{agent}", f"{server}_echo", token_of(agent), number)
                                   for number in range(10, 10 + _DIFFERENT)])
        for agent, server in _AGENTS.items()
    ]  # fmt: skip
    for subject in found:
        load(Job(subject.port, subject.requests, 8, 0.5, at_least=100))
    return found


def compare(*args: str) -> tuple[float, float, float]:
    """Microseconds of CPU for a call of either, and the middle of the ratios."""
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as one:
        plain, governed = set_up(one, *args)
        rounds = [_pair(plain, governed, is_turned=bool(number % 2)) for number in range(_ROUNDS)]
    middles = (statistics.median(each) for each in zip(*rounds, strict=True))
    return *middles, statistics.median(mine / other for other, mine in rounds)


def _pair(plain: Subject, governed: Subject, *, is_turned: bool) -> tuple[float, float]:
    """One round of either, neighbours in time; who goes first changes, as the first leaves records to be moved."""
    if not is_turned:
        return _round(plain), _round(governed)
    second = _round(governed)
    return _round(plain), second


def _round(subject: Subject) -> float:
    before = _cpu(subject.pid)
    found = load(Job(subject.port, subject.requests, _CROWD, _SECONDS))
    assert found.count
    assert not found.wrong, f"{subject.name}: {found}"
    return (_cpu(subject.pid) - before) / found.count * 1e6


def _cpu(pid: int) -> float:
    """Seconds of CPU that the first threads of a process and its children have used: their loops."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(int(Path(f"/proc/{one}/schedstat").read_text().split()[0]) for one in (pid, *children)) / 1e9


def measure() -> Iterator[Ratio]:
    """The goals as ratios of CPU per call."""
    plain, _, ratio = compare()
    yield Ratio("a call with pins and budgets on, 64 clients", plain * ratio, plain, "a call without", LIMIT, "µs")


if __name__ == "__main__":
    for args in ((), ("--workers", "2")):
        plain, governed, ratio = compare(*args)
        print(args, f"{plain:.1f} → {governed:.1f} µs of CPU for a call, {ratio:.3f}", flush=True)
