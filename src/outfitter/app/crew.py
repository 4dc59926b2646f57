"""Processes of one kind, looked after: started, started again when they die, ended together.

Each hears on its standard input what it is to do; the end of that input is the word to end, so a process also ends when
nobody is there any more to say it. What they do is not known here; it is the matter of ``workers`` and ``beside``.
"""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from anyio.abc import Process

from outfitter.app.options import BeforeEnd
from outfitter.errors import Unavailable

_log = logging.getLogger(__name__)
_FIRST_WAIT, _MOST_WAIT = 0.2, 30.0
_LONG_LIFE = 60.0
"""A process that lived so long did not die of how it was started."""
_END_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Crew:
    """All processes of one command. Each says something on its standard output when it is ready."""

    command: Sequence[str]
    environment: Mapping[str, str]
    _ending: anyio.Event = field(default_factory=anyio.Event)
    _keeping: anyio.Lock = field(default_factory=anyio.Lock)

    async def keep(self, name: str) -> None:
        """Have one process without an errand, until ``end``; Unavailable when it cannot be started at all."""
        async with self._keeping:
            await self._keep(name, b"", anyio.Event())

    async def end(self) -> None:
        """Have what ``keep`` keeps end, or never begin."""
        self._ending.set()
        async with self._keeping:
            return

    async def work(self, errands: Sequence[bytes], on_ready: Callable[[], None], before_end: BeforeEnd) -> None:
        """Have one process for each errand until a signal comes; Unavailable when one cannot be started at all.

        The first is alone at first, so that what all of them would say is said once.
        """
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with anyio.create_task_group() as group:
                group.start_soon(self._hear, signals, before_end)
                members = [(f"worker {number}", errand, anyio.Event()) for number, errand in enumerate(errands)]
                for batch in (members[:1], members[1:]):
                    for member in batch:
                        group.start_soon(self._keep, *member)
                    for _, _, ready in batch:
                        await ready.wait()
                if not self._ending.is_set():
                    on_ready()

    async def _hear(self, signals: AsyncIterator[signal.Signals], before_end: BeforeEnd) -> None:
        async for _ in signals:
            break
        await before_end()
        self._ending.set()

    async def _keep(self, name: str, errand: bytes, ready: anyio.Event) -> None:
        """Have one process run; one that dies is started again, later and later when it goes on dying."""
        wait = _FIRST_WAIT
        while not self._ending.is_set():
            began = anyio.current_time()
            code = await self._live(errand, ready)
            if self._ending.is_set():
                break
            if not ready.is_set():
                told = f"{name} could not start (exit code {code})"
                raise Unavailable(told, hint="its own message stands above")
            wait = _FIRST_WAIT if anyio.current_time() - began > _LONG_LIFE else wait
            _log.warning("%s has ended (exit code %d) and is started again in %.1f s", name, code, wait)
            with anyio.move_on_after(wait):
                await self._ending.wait()
            wait = min(wait * 2, _MOST_WAIT)
        ready.set()

    async def _live(self, errand: bytes, ready: anyio.Event) -> int:
        """One life of a process: its exit code."""
        process = await anyio.open_process(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, env=dict(self.environment),
            start_new_session=True,  # Ctrl-C is for the one who tells them
        )  # fmt: skip
        async with process, anyio.create_task_group() as group:
            group.start_soon(self._end, process)
            if process.stdin is not None and process.stdout is not None:
                with suppress(anyio.EndOfStream, anyio.BrokenResourceError):  # it has ended
                    await process.stdin.send(errand)
                    await process.stdout.receive()
                    ready.set()
            await process.wait()
            group.cancel_scope.cancel()
        return process.returncode or 0

    async def _end(self, process: Process) -> None:
        """At the end tell it; one that does not hear is killed."""
        await self._ending.wait()
        if process.stdin is not None:
            await process.stdin.aclose()
        await anyio.sleep(_END_SECONDS)
        process.kill()
