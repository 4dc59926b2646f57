"""A gateway under load for a long time while its servers are killed: nothing wrong, nothing unrecorded, nothing kept.

``python -m benchmarks.soak [SECONDS]`` starts ``outfitter up`` with HTTP and stdio servers and kills these (-9) at
random, measures how many calls a second it takes meanwhile, and drives it at 70 % of that in both eras. ``SEED``
in the environment repeats a choice. The exit code is 1 when anything is not as it must be.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.gateway_stage import Stage, free_port, gateway, resident, stage, write_catalog
from benchmarks.soak_client import ERROR, GOOD, LOST, Client, Heard, Pace, mark_of

_HTTP, _PROGRAMS, _CLIENTS = 4, 2, 64
_SHARE, _ABOUT = 0.7, 0.9
_LEAST_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_RECOVER_SECONDS = 90.0
_END_SECONDS = 30.0
_GROWTH = 1.10


@dataclass(slots=True)
class Soak:
    """One run: the processes, and what was seen of them."""

    one: Stage
    mark: str
    dice: random.Random
    port: int = 0
    pid: int = 0
    heard: Heard = field(default_factory=Heard)
    ports: dict[str, int] = field(default_factory=dict[str, int])
    killed: Counter[str] = field(default_factory=Counter[str])
    memory: list[float] = field(default_factory=list[float])
    share: float = 0.0
    """How many calls a second there were, of those there could be."""

    # ── processes ──

    def set_up(self) -> None:
        """Start everything."""
        servers: dict[str, dict[str, object]] = {}
        for number in range(_HTTP):
            name = f"http{number}"
            self.ports[name] = free_port()
            self._start(name)
            servers[name] = {"url": f"http://127.0.0.1:{self.ports[name]}/mcp"}
        for number in range(_PROGRAMS):
            args = ["-m", "benchmarks.gateway_upstream", "stdio", f"{self.mark}-{number}"]
            servers[f"pipe{number}"] = {"command": sys.executable, "args": args, "cwd": str(Path.cwd())}
        write_catalog(self.one.folder, servers, {name: name for name in servers})
        self.port, self.pid = gateway(self.one)

    def _start(self, name: str) -> None:
        port = self.ports[name]
        command = (sys.executable, "-m", "benchmarks.gateway_upstream", str(port), "10", self.mark, name)
        self.one.start(*command, port=port)

    @property
    def servers(self) -> list[str]:
        """Every server, which is also the name of the agent that has it."""
        return [*self.ports, *(f"pipe{number}" for number in range(_PROGRAMS))]

    def found(self, *words: str) -> list[int]:
        """The processes of this run whose command line has these words."""
        return [
            pid for pid, words_of in _processes() if self.mark in " ".join(words_of) and set(words) <= set(words_of)
        ]

    async def kill_some(self, stop: asyncio.Event) -> None:
        """Kill one server after the other; those over HTTP are started again here, programs by the gateway."""
        while not stop.is_set():
            await _wait(stop, self.dice.uniform(1.0, 6.0))
            name = self.dice.choice(self.servers if self.dice.random() < 1 / 2 else self.servers[_HTTP:])
            away = self.dice.uniform(0.0, 1.0)
            words = (name,) if name in self.ports else (f"{self.mark}-{name[-1]}",)
            for pid in self.found(*words):
                os.kill(pid, signal.SIGKILL)
                self.killed[name] += 1
            if name in self.ports:
                for process in self.one.processes:
                    process.poll()
                await _wait(stop, away)
                await asyncio.to_thread(self._start, name)

    async def look(self, stop: asyncio.Event) -> None:
        """Note the gateway's memory."""
        while not stop.is_set():
            self.memory.append(resident(self.pid))
            await _wait(stop, _LOOK_SECONDS)

    # ── load ──

    def clients(self, name: str, heard: Heard) -> list[Client]:
        """Clients of every server, in both eras."""
        servers = self.servers
        return [
            Client(
                f"{name}{number}", self.port, servers[number // 2 % len(servers)], number % 2 == 0, heard
            )
            for number in range(_CLIENTS)
        ]  # fmt: skip

    async def drive(self, name: str, seconds: float, pace: Pace, *, is_rough: bool = False) -> float:
        """Calls a second of all clients, in so many seconds."""
        stop, before, began = asyncio.Event(), self.heard.counts.total(), time.monotonic()
        async with asyncio.TaskGroup() as group:
            for client in self.clients(name, self.heard):
                group.create_task(client.run(stop, pace))
            if is_rough:
                group.create_task(self.kill_some(stop))
                group.create_task(self.look(stop))
            await asyncio.sleep(seconds)
            stop.set()
        return (self.heard.counts.total() - before) / (time.monotonic() - began)

    async def recover(self) -> list[str]:
        """Servers that do not answer again by themselves, though they run."""
        left, deadline = set(self.servers), time.monotonic() + _RECOVER_SECONDS
        clients = {client.server: client for client in self.clients("again", self.heard)}
        while left and time.monotonic() < deadline:
            for name in sorted(left):
                if await clients[name].call() == GOOD:
                    left.discard(name)
            await asyncio.sleep(0.5)
        for client in clients.values():
            await client.close()
        return sorted(left)

    async def run(self, seconds: float) -> list[str]:
        """Measure, then drive; the servers that did not come back."""
        await self.drive("warm", 1.0, Pace())
        # With its servers dying as later: refusing calls for a server that is away costs more than making them.
        fastest = await self.drive("fast", max(_LEAST_SECONDS, seconds / 10), Pace(), is_rough=True)
        self.memory.clear()
        print(f"{fastest:.0f} calls a second at most; {seconds:.0f} s at {_SHARE:.0%} of it", flush=True)
        self.share = await self.drive("soak", seconds, Pace(1 / (fastest * _SHARE)), is_rough=True) / fastest
        return await self.recover()


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that must hold."""

    what: str
    found: str
    is_kept: bool


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return


def _processes() -> Iterator[tuple[int, list[str]]]:
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                yield int(place.name), (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue


def _compare(state: Path, heard: Heard) -> list[Row]:
    """Every answer against the records: there exactly once, with an outcome that fits."""
    records: dict[int, str] = {}
    twice = 0
    with sqlite3.connect(state / "audit.sqlite") as audit:
        for digest, outcome in audit.execute("SELECT digest, outcome FROM calls"):
            twice += mark_of(digest) in records
            records[mark_of(digest)] = outcome
    missing = sum(mark not in records for kind in (GOOD, ERROR) for mark in heard.marks[kind])
    unlike = sum(records.get(mark, "done") != "done" for mark in heard.marks[GOOD])
    unlike += sum(records.get(mark) == "done" for mark in heard.marks[ERROR])
    known = {mark for marks in heard.marks.values() for mark in marks}
    strange = sum(mark not in known for mark in records)
    return [
        Row("answers without a record", str(missing), missing == 0),
        Row("calls with two records", str(twice), twice == 0),
        Row("records that say something else than the answer", str(unlike), unlike == 0),
        Row("records of calls that nobody made", str(strange), strange == 0),
    ]


def _memory(samples: list[float]) -> Row:
    """The last third against the first, after warming up."""
    steady = samples[len(samples) // 10 :]
    third = max(1, len(steady) // 3)
    first, last = statistics.median(steady[:third]), statistics.median(steady[-third:])
    return Row("memory, first and last third (MiB)", f"{first:.1f} → {last:.1f}", last <= first * _GROWTH)


def _end(soak: Soak) -> list[Row]:
    """Stop the gateway and see what is left."""
    process = next(one for one in soak.one.processes if one.pid == soak.pid)
    process.send_signal(signal.SIGTERM)
    try:
        code = process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        code = None
    left = soak.found("stdio")
    return [
        Row("exit code of the gateway", str(code), code == 0),
        Row("processes left over", str(len(left)), not left),
    ]


def _rows(soak: Soak, silent: list[str]) -> list[Row]:
    heard = soak.heard
    rows = [
        Row("load, of what it can take", f"{soak.share:.0%}", soak.share >= _SHARE * _ABOUT),
        Row("good answers", f"{heard.counts[GOOD]:,}", all(heard.good_of[name] for name in soak.servers)),
        Row("honest errors", f"{heard.counts[ERROR]:,}", True),
        Row("servers killed", str(soak.killed.total()), soak.killed.total() > 0),
        Row("wrong answers", str(len(heard.wrong)), not heard.wrong),
        Row("calls without an answer", str(heard.counts[LOST]), heard.counts[LOST] == 0),
        Row("servers that did not come back", ", ".join(silent) or "0", not silent),
        _memory(soak.memory),
        *_end(soak),
    ]
    return [*rows, *_compare(soak.one.folder / "state", heard)]


def main() -> int:
    """Run, print the table, and say whether everything held."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"SEED={seed}", flush=True)
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as one:
        soak = Soak(one, f"soak-{os.getpid()}", dice)
        soak.set_up()
        import uvloop

        silent = uvloop.run(soak.run(seconds))
        rows = _rows(soak, silent)
        for text in soak.heard.wrong[:10]:
            print(text)
    print("\n| what | found | |\n|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.found} | {'' if row.is_kept else '**not kept**'} |")
    return 0 if all(row.is_kept for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
