"""A client that is never the limit: keep-alive connections, each sends its next request when it has its answer.

``python -m benchmarks.gateway_load`` reads one job as JSON from stdin and prints what came of it: requests per second,
the middle of the latencies in microseconds, and how many answers were wrong.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
import time
from typing import cast

import msgspec

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Job(msgspec.Struct):
    """What to do. ``requests`` are whole HTTP requests, sent in turn."""

    port: int
    requests: list[bytes]
    connections: int
    seconds: float
    expects: bytes = b'"echo"'
    at_least: int = 0
    """Go on, for a minute at most, until there are so many answers."""


class Found(msgspec.Struct):
    """What came of it."""

    rate: float
    p50: float
    wrong: int
    count: int


class _Client(asyncio.Protocol):
    def __init__(self, job: Job, start: int, done: asyncio.Event) -> None:
        self._job, self._next, self._done = job, start, done
        self._buffer = b""
        self._sent = 0.0
        self.times: list[float] = []
        self.wrong = 0
        self.is_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        self._next = (self._next + 1) % len(self._job.requests)
        self._sent = time.perf_counter()
        self._transport.write(self._job.requests[self._next])

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._buffer, 0, end)
        if length is not None:
            if len(self._buffer) < end + 4 + int(length[1]):
                return
        elif not self._buffer.endswith(b"0\r\n\r\n"):
            return
        self.times.append(time.perf_counter() - self._sent)
        if self._job.expects not in self._buffer or not self._buffer.startswith(b"HTTP/1.1 200"):
            self.wrong += 1
        self._buffer = b""
        if self._done.is_set():
            self._transport.close()
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - counted as wrong
        if not self._done.is_set():
            self.wrong += 1


async def run(job: Job) -> Found:
    """Do the job."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    clients: list[_Client] = []
    start = time.perf_counter()
    for number in range(job.connections):
        made = await loop.create_connection(
            lambda number=number: _Client(job, number * len(job.requests) // job.connections, done),
            "127.0.0.1",
            job.port,
        )
        clients.append(made[1])
    await asyncio.sleep(job.seconds)
    while sum(len(client.times) for client in clients) < job.at_least and time.perf_counter() < start + 60:  # noqa: ASYNC110 - counted, not told
        await asyncio.sleep(0.05)
    done.set()
    seconds = time.perf_counter() - start
    times = [one for client in clients for one in client.times]
    wrong = sum(client.wrong for client in clients)
    return Found(len(times) / seconds, statistics.median(times) * 1e6 if times else 0.0, wrong, len(times))


if __name__ == "__main__":
    import uvloop

    sys.stdout.buffer.write(
        msgspec.json.encode(uvloop.run(run(msgspec.json.decode(sys.stdin.buffer.read(), type=Job))))
    )
