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

from outfitter.app import GatewayOptions, Settings, arm_plan, make_pool
from outfitter.cli.console import complete_names, load, settings
from outfitter.errors import UnknownAgent

_READ = 256 * 1024


@click.command("gateway")
@click.option("--stdio", "is_stdio", is_flag=True, required=True, help="Speak on stdin and stdout.")
@click.option("--agent", required=True, shell_complete=complete_names("agents"), help="Whose endpoint it is.")
@click.option("--server", help="This server alone, under its own names.")
def gateway_command(is_stdio: bool, agent: str, server: str | None) -> None:
    r"""Be an agent's MCP endpoint for the client that starts this command.

    \b
    Examples:
      outfitter gateway --stdio --agent tester
      outfitter gateway --stdio --agent tester --server github
    """
    del is_stdio
    if agent not in load().agents:
        raise UnknownAgent(f"no agent '{agent}'")
    # Whatever anybody prints goes to stderr: stdout carries messages and nothing else.
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    anyio.run(partial(_run, settings(), agent, server, out), backend_options={"use_uvloop": True})


async def _run(chosen: Settings, agent: str, server: str | None, out: int) -> None:
    from outfitter.gateway import Seat, StdioFront, open_desk, open_recorder
    from outfitter.resolution import resolve

    catalog = load()

    def make(name: str) -> Seat:
        outfit = arm_plan(resolve(name, catalog), os.environ, chosen)
        return Seat(outfit.plan, outfit.servers)

    chosen.state.mkdir(parents=True, exist_ok=True)
    async with (
        open_recorder(chosen.state, database=chosen.database, keep_days=chosen.keep_days) as recorder,
        open_desk(make, None, partial(make_pool, chosen), watch=GatewayOptions().watch(recorder)) as desk,
        anyio.create_task_group() as group,
    ):
        desk.view(agent, server)
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
