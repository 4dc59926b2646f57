"""How is a scripted server reached over HTTP? ``serve_http`` in the test's own process, or as a process of its own.

``python -m outfitter.testing.http_server --script FILE|JSON --port-file FILE`` writes the port it got into the file (or
on stdout) and serves until it is ended. The endpoints are ``http_routes`` and ``sse_routes``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from aiohttp import web

from outfitter.errors import Invalid
from outfitter.testing.conversation import Host
from outfitter.testing.exchange import Ledger, Until
from outfitter.testing.faults import Crash
from outfitter.testing.http_front import Front, forgive_hanging_up
from outfitter.testing.http_routes import StreamableHttp
from outfitter.testing.script import Script
from outfitter.testing.sse_routes import ServerSentEvents
from outfitter.testing.start import die, read_script

_LOOPBACK = "127.0.0.1"
_LISTEN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class HttpServing:
    """A server that runs: where it is, and what it has counted so far."""

    port: int
    ledger: Ledger
    host: Host

    async def play(self, script: Script) -> None:
        """Be another server from now on, and tell everyone who listens that the tools have changed.

        It waits a while until somebody listens: whoever has just connected begins to a moment later.
        """
        self.host.script = script
        with anyio.move_on_after(_LISTEN_SECONDS):
            await self.host.wait_until(Until(listeners=1))
        await self.host.announce("notifications/tools/list_changed", {})

    @property
    def url(self) -> str:
        """The endpoint of streamable HTTP."""
        return f"http://{_LOOPBACK}:{self.port}/mcp"

    @property
    def sse_url(self) -> str:
        """The endpoint of HTTP with server-sent events."""
        return f"http://{_LOOPBACK}:{self.port}/sse"

    @property
    def hits(self) -> int:
        """How many HTTP requests came in."""
        return self.ledger.hits


@asynccontextmanager
async def serve_http(script: Script | None = None, *, port: int = 0) -> AsyncGenerator[HttpServing]:
    """Serve a script on loopback while the block runs. It cannot crash: that takes a process of its own."""
    played = script or Script()
    if any(isinstance(fault, Crash) for fault in played.faults):
        raise Invalid("a crash would end the test itself", hint="run python -m outfitter.testing.http_server")
    async with serving_host(Host(played, die), port) as serving:
        yield serving


@asynccontextmanager
async def serving_host(host: Host, port: int) -> AsyncGenerator[HttpServing]:
    """Serve a host on loopback, at both endpoints, while the block runs."""
    front = Front(host)
    streamable, events = StreamableHttp(front), ServerSentEvents(front)
    app = web.Application(client_max_size=1 << 28, middlewares=[forgive_hanging_up])
    app.add_routes([*streamable.routes(), *events.routes()])
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, _LOOPBACK, port).start()
        yield HttpServing(runner.addresses[0][1], host.ledger, host)
    finally:
        front.close()
        await streamable.close()
        await runner.cleanup()


async def _run(script: Script, port: int, port_file: Path | None) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with serving_host(Host(script, die), port) as serving:
        _tell_port(serving.port, port_file)
        await stop.wait()


def _tell_port(port: int, port_file: Path | None) -> None:
    """Write the port into a file, renamed into place so that a reader never sees it empty; else on stdout."""
    if port_file is None:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        return
    draft = port_file.with_name(f"{port_file.name}.{os.getpid()}")
    draft.write_text(str(port), encoding="utf-8")
    draft.replace(port_file)


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description="A scripted MCP server on loopback HTTP.")
    parser.add_argument("--script", default="{}", help="a script as JSON, or a file that holds one")
    parser.add_argument("--port", type=int, default=0, help="the port; by default a free one")
    parser.add_argument("--port-file", type=Path, help="where to write the port that was taken; else on stdout")
    options = parser.parse_args()
    asyncio.run(_run(read_script(options.script), options.port, options.port_file))


if __name__ == "__main__":
    main()
