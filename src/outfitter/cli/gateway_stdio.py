"""The command for clients that only start commands: an agent's endpoint on stdin and stdout."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial

import anyio
import click

from outfitter.app import Settings, open_endpoint
from outfitter.cli.console import complete_names, settings

_READ = 256 * 1024


@click.command("gateway")
@click.option("--stdio", "is_stdio", is_flag=True, required=True, help="Speak on stdin and stdout.")
@click.option("--agent", required=True, shell_complete=complete_names("agents"), help="Whose endpoint it is.")
@click.option("--server", help="This server alone, under its own names.")
@click.option("--files", "uses_files", is_flag=True, help="Serve the catalog folder, also where there is a registry.")
def gateway_command(is_stdio: bool, agent: str, server: str | None, uses_files: bool) -> None:
    r"""Be an agent's MCP endpoint for the client that starts this command.

    Where 'outfitter up' has made a registry, its agents are served; else those of the catalog folder.

    \b
    Examples:
      outfitter gateway --stdio --agent tester
      outfitter gateway --stdio --agent tester --server github
      outfitter gateway --stdio --agent tester --files
    """
    del is_stdio
    # Whatever anybody prints goes to stderr: stdout carries messages and nothing else.
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    run = partial(_run, settings(), agent, server, uses_files=uses_files, out=out)
    anyio.run(run, backend_options={"use_uvloop": True})


async def _run(chosen: Settings, agent: str, server: str | None, *, uses_files: bool, out: int) -> None:
    from outfitter.gateway import StdioFront

    async with (
        open_endpoint(chosen, os.environ, uses_files=uses_files) as desk,
        anyio.create_task_group() as group,
    ):
        await desk.open_view(agent, server)
        group.start_soon(_stop_when_told, group)
        await StdioFront(desk, agent, server).serve(_lines(), partial(_write, out))
        group.cancel_scope.cancel()


async def _stop_when_told(group: anyio.abc.TaskGroup) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            group.cancel_scope.cancel()
            return


async def _lines() -> AsyncIterator[bytes]:
    """Every line of stdin; waiting for one can be given up."""
    descriptor, begun = sys.stdin.fileno(), bytearray()
    while True:
        with suppress(PermissionError):  # a file is always ready, and cannot be waited for
            await anyio.wait_readable(descriptor)
        piece = os.read(descriptor, _READ)
        if not piece:
            break
        begun += piece
        *whole, rest = begun.split(b"\n")
        begun = rest
        for line in whole:
            yield bytes(line)
    if begun:
        yield bytes(begun)


async def _write(descriptor: int, data: bytes) -> None:
    """All of it; a client that does not read holds up nothing but its own answers."""
    left = memoryview(data)
    while left:
        with suppress(PermissionError):
            await anyio.wait_writable(descriptor)
        left = left[os.write(descriptor, left[:4096]) :]
