"""One child process: started, heard, written to, and ended together with everything it started.

    prepared ──run()──▶ running ──▶ exited ──▶ ended
                           │           │          the listener was told, once; nothing more is heard
                           │           leftovers of its group are killed
                           └ stop: stdin closed, then SIGTERM, then SIGKILL to the group, each with its own wait

The task that enters ``run`` leaves it too, and the process is gone by then, also when that task is cancelled. What
the bytes mean is the listener's affair (``stdio``); what is started is decided in ``launch``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import anyio

from outfitter.errors import SpawnFailed
from outfitter.upstream.journal import ProcessJournal
from outfitter.upstream.launch import Launch
from outfitter.upstream.stderr import StderrRing

_LOG = logging.getLogger(__name__)
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_KILL = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL
_SPAWN_LIMIT = 30.0
_CLOSE_LIMIT = 1.0


@dataclass(frozen=True, slots=True)
class StopTimes:
    """How long a process may take, in seconds, after each thing that asks it to end."""

    stdin_closed: float = 2.0
    terminated: float = 2.0
    killed: float = 5.0
    last_output: float = 0.5
    """After its exit or a closed pipe, until what is still missing is given up."""


class Listener(Protocol):
    """Who hears a process. Neither method may block or raise."""

    def hear(self, data: bytes) -> None:
        """Take a piece of its stdout."""
        ...

    def end(self, how: str) -> None:
        """Take note that it is gone and how it went; called once, after the last piece."""
        ...


class ChildProcess(asyncio.SubprocessProtocol):
    """The supervisor of one process. Made by ``prepare``, alive inside ``run``."""

    def __init__(self, launch: Launch, *, times: StopTimes | None = None, stderr_bytes: int = 64 * 1024) -> None:
        self.launch = launch
        self._times = times or StopTimes()
        self._stderr = StderrRing(stderr_bytes)
        self._listener: Listener | None = None
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed_pipe = ""
        self._is_stopping = False
        self._is_ended = False
        self._room = asyncio.Event()
        self._room.set()
        self._exited = asyncio.Event()
        self._closed = asyncio.Event()

    # ── using it ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def pid(self) -> int:
        """The process id, which is also its group's."""
        return 0 if self._transport is None else self._transport.get_pid()

    @property
    def has_room(self) -> bool:
        """Whether a write would go through without piling up."""
        return self._room.is_set()

    async def wait_for_room(self) -> None:
        """Wait until the process has read enough of what was written, or is gone."""
        await self._room.wait()

    def write(self, data: bytes) -> bool:
        """Write to its stdin, without waiting; False when it is closed, so that nothing was written."""
        if self._stdin is None or self._stdin.is_closing():
            return False
        self._stdin.write(data)
        return True

    def unread_bytes(self) -> int:
        """How much was written that it has not read yet."""
        return 0 if self._stdin is None else self._stdin.get_write_buffer_size()

    def last_words(self) -> str:
        """The end of its stderr, ready to be shown."""
        return self._stderr.last_words(self.launch.hidden)

    def kill(self) -> None:
        """End the whole group at once."""
        self._signal(_KILL)

    # ── its life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def run(self, listener: Listener, journal: ProcessJournal | None = None) -> AsyncGenerator[None]:
        """Start it, and end it when the block is left."""
        self._listener = listener
        record: Path | None = None
        try:
            await self._spawn()
            record = self._write_record(journal)
            yield
        finally:
            await self._stop()
            if journal is not None and self._exited.is_set():
                journal.forget(record)

    async def _spawn(self) -> None:
        launch = self.launch
        try:
            # Not to be cancelled half-way: a process that nobody holds could not be ended.
            with anyio.fail_after(_SPAWN_LIMIT, shield=True):
                await asyncio.get_running_loop().subprocess_exec(
                    lambda: self, *launch.argv, env=dict(launch.env), cwd=launch.cwd, start_new_session=True
                )
        except FileNotFoundError:
            hint = "the interpreter in its first line may be missing"
            raise SpawnFailed(f"{launch.program.name} cannot be started", where=launch.where, hint=hint) from None
        except (OSError, TimeoutError) as error:
            reason = error.strerror or "it took too long"
            raise SpawnFailed(f"{launch.program.name} cannot be started: {reason}", where=launch.where) from None
        except ValueError:  # its message would show the value
            reason = "an argument or variable holds a character that no program can be given"
            raise SpawnFailed(f"{launch.program.name} cannot be started: {reason}", where=launch.where) from None

    def _write_record(self, journal: ProcessJournal | None) -> Path | None:
        try:
            return None if journal is None else journal.record(self.pid, self.launch.program.name, self._pipes())
        except OSError as error:
            reason = f"its record cannot be written: {error.strerror}"
            raise SpawnFailed(f"{self.launch.program.name} was not kept: {reason}", where=self.launch.where) from None

    def _pipes(self) -> tuple[int, ...]:
        """The inodes of its stdout and stderr: whoever holds one of these pipes comes from this process."""
        transport = cast("asyncio.SubprocessTransport", self._transport)
        pipes = [transport.get_pipe_transport(fd) for fd in (_STDOUT, _STDERR)]
        files = [pipe.get_extra_info("pipe") for pipe in pipes if pipe is not None]
        if None in files:
            return self._pipes_of_the_process()
        return tuple(os.fstat(file.fileno()).st_ino for file in files if not file.closed)

    def _pipes_of_the_process(self) -> tuple[int, ...]:
        """The same as the process has them, on a loop that does not show its own ends."""
        found: list[int] = []
        for fd in (_STDOUT, _STDERR):
            with suppress(OSError):
                found.append(Path(f"/proc/{self.pid}/fd/{fd}").stat().st_ino)
        return tuple(found)

    async def _stop(self) -> None:
        self._is_stopping = True
        if self._transport is None:
            return
        with anyio.CancelScope(shield=True):
            self._close_stdin()
            waits = self._times
            for number, wait in ((signal.SIGTERM, waits.stdin_closed), (_KILL, waits.terminated)):
                with anyio.move_on_after(wait):
                    await self._exited.wait()
                if self._exited.is_set():
                    break
                self._signal(number)
            with anyio.move_on_after(waits.killed):
                await self._exited.wait()
            if not self._exited.is_set():
                _LOG.error("process %d (%s) does not end", self.pid, self.launch.program.name)
            self._transport.close()
            with anyio.move_on_after(_CLOSE_LIMIT):
                await self._closed.wait()
            self._end()

    def _close_stdin(self) -> None:
        if self._stdin is None or self._stdin.is_closing():
            return
        if self._stdin.get_write_buffer_size():
            self._stdin.abort()
        else:
            self._stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        """Signal the group while its leader lives; its pid cannot mean another process then."""
        if self._transport is None or self._exited.is_set():
            return
        if sys.platform == "win32":
            self._transport.kill()
        else:
            _signal_group(self.pid, number)

    # ── what the loop calls ──────────────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the handles."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Hand stdout on; keep the end of stderr."""
        if fd == _STDERR:
            self._stderr.append(data)
        elif self._listener is not None and not self._is_ended:
            self._listener.hear(data)

    def pause_writing(self) -> None:
        """Note that the process reads slower than it is written to."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Let the writers on."""
        self._room.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002  # the loop's signature
        """Give a process that closed its stdin or stdout a moment to exit, then end it."""
        self._room.set()
        if fd != _STDERR and not self._is_stopping and not self._exited.is_set() and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._times.last_output, self._give_up, fd)

    def _give_up(self, fd: int) -> None:
        self._closed_pipe = "closed its stdin" if fd == _STDIN else "closed its stdout"
        self.kill()

    def process_exited(self) -> None:
        """End what it left behind, and wait a moment for its last output."""
        self._exited.set()
        self._room.set()
        if sys.platform != "win32":
            _signal_group(self.pid, _KILL)
        if self._timer is not None:
            self._timer.cancel()
        # A grandchild that left the group may hold the pipes open for ever.
        self._timer = asyncio.get_running_loop().call_later(self._times.last_output, self._end)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # the loop's signature
        """Know that it has exited and all pipes are closed."""
        self._closed.set()
        self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_ended:
            return
        self._is_ended = True
        if self._listener is not None:
            self._listener.end(self._how_it_went())

    def _how_it_went(self) -> str:
        code = None if self._transport is None else self._transport.get_returncode()
        if code is None:
            return "does not end"
        if code >= 0:
            return f"exited with code {code}"
        if self._closed_pipe:
            return f"{self._closed_pipe} and was ended"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        pass  # nobody is left
    except PermissionError:
        _LOG.warning("process group %d may not be signalled", pid)
