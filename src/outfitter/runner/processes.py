"""One program of a run: started in its own session, given one document, heard, and ended with everything it started.

    started ──▶ exited ──▶ ended: nothing of its group, and nothing that carries the run's mark, is left
       └ left early (stop, time-out, error): SIGTERM to the group, a moment, SIGKILL, then as above

The task that calls ``run_program`` owns the process: it is gone when the call returns, also when it is cancelled. What
is started is decided by the executors; the prompt is on standard input only, never in an argument.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread

from outfitter.errors import SpawnFailed
from outfitter.runner.leftovers import end_run, marks

_STDIN, _STDOUT = 0, 1
_KEPT_STDERR = 64 * 1024
_TERM_SECONDS, _KILL_SECONDS, _LAST_OUTPUT_SECONDS = 3.0, 5.0, 1.0


@dataclass(frozen=True, slots=True)
class Program:
    """What to start for a run."""

    run_id: str
    argv: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """How it went: the exit code, negative for a signal, and the end of what it said on stderr."""

    code: int
    stderr: bytes = field(repr=False)


class _Child(asyncio.SubprocessProtocol):
    """What the loop tells of a process; asyncio's own way of waiting may hang while a grandchild holds a pipe."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        self._hear = hear
        self.said = bytearray()
        self.transport: asyncio.SubprocessTransport | None = None
        self.failure: Exception | None = None
        """What went wrong while it was heard; nothing more is heard then."""
        self.over = asyncio.Event()
        """Set when it has exited, or cannot be heard."""
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDOUT:
            self._hear_unless_broken(data)
        else:
            self.said += data
            del self.said[:-_KEPT_STDERR]

    def _hear_unless_broken(self, data: bytes) -> None:
        if self.failure is None:
            try:
                self._hear(data)
            except Exception as error:  # noqa: BLE001 - raised again by whoever waits; the loop would swallow it
                self.failure = error
                self.over.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.over.set()

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        self.closed.set()


async def run_program(program: Program, document: bytes, hear: Callable[[bytes], None]) -> Exit:
    """Start it, write the document to its standard input, hand its output on, and wait until it ends."""
    child = _Child(hear)
    transport = await _start(program, child)
    try:
        _write(transport, document)
        await child.over.wait()
        child.raise_failure()
        await _end_rest(transport.get_pid(), program.run_id)
        # What is left in the pipes is read; one that a stranger holds open is not waited for.
        with anyio.move_on_after(_LAST_OUTPUT_SECONDS):
            await child.closed.wait()
        child.raise_failure()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _end(child, transport.get_pid())
            await _end_rest(transport.get_pid(), program.run_id)
        raise
    finally:
        transport.close()
    return Exit(transport.get_returncode() or 0, bytes(child.said))


async def _start(program: Program, child: _Child) -> asyncio.SubprocessTransport:
    env = {**program.env, **marks(program.run_id)}
    try:
        starting = asyncio.get_running_loop().subprocess_exec(
            lambda: child, *program.argv, env=env, cwd=program.cwd, start_new_session=True
        )
        # Not to be cancelled half-way: a process that nobody holds could not be ended.
        with anyio.CancelScope(shield=True):
            await starting
    except OSError as error:
        name = Path(program.argv[0]).name
        raise SpawnFailed(f"{name} cannot be started: {error.strerror}", where=f"run '{program.run_id}'") from None
    except ValueError:  # its message would show the value
        reason = "an argument or variable holds a character that no program can be given"
        raise SpawnFailed(f"the program cannot be started: {reason}", where=f"run '{program.run_id}'") from None
    return cast("asyncio.SubprocessTransport", child.transport)


def _write(transport: asyncio.SubprocessTransport, document: bytes) -> None:
    """Give it all it gets; what it does not read is dropped when it ends."""
    stdin = cast("asyncio.WriteTransport | None", transport.get_pipe_transport(_STDIN))
    if stdin is not None:
        stdin.write(document)
        stdin.close()


async def _end(child: _Child, pid: int) -> None:
    """End a process that still runs; it is waited for, so that it does not stay as a zombie."""
    for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        if not child.exited.is_set():
            _signal(pid, number)
            with anyio.move_on_after(seconds):
                await child.exited.wait()


async def _end_rest(pid: int, run_id: str) -> None:
    """End what a process that has just exited left of its group, and whatever left the group."""
    _signal(pid, signal.SIGKILL)
    await anyio.to_thread.run_sync(end_run, run_id)


def _signal(pid: int, number: signal.Signals) -> None:
    """Signal the group; its number stays taken as long as it has a member."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
