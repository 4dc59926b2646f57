"""Stdin and stdout as an MCP client uses them: lines in, whole lines out, and nothing else on stdout.

For every command that is an endpoint on a pipe. What the lines say is the caller's affair.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio

_READ = 256 * 1024


def own_stdout() -> int:
    """A descriptor for messages; whatever anybody prints from now on goes to stderr."""
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return out


async def stop_when_told(scope: anyio.CancelScope) -> None:
    """Cancel at the first SIGINT or SIGTERM."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def lines_of_stdin() -> AsyncIterator[bytes]:
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


async def write_all(descriptor: int, data: bytes) -> None:
    """All of it; a client that does not read holds up nothing but its own answers."""
    left = memoryview(data)
    while left:
        with suppress(PermissionError):
            await anyio.wait_writable(descriptor)
        left = left[os.write(descriptor, left[:4096]) :]
