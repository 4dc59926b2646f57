"""On which loop the connections live, and how a call from any thread or any other loop gets there and back.

A home is one task that opens the upstream pool, keeps it, and closes it: in a thread with a loop of its own, or on the
loop of whoever started it. States: started, stopped; owner: the task of ``_live``. A call whose caller is cancelled is
cancelled there too, so that the server hears of it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from outfitter.errors import McpConnectionError
from outfitter.upstream import Pool

_log = logging.getLogger(__name__)
T = TypeVar("T")
Job = Callable[[Pool], Awaitable[T]]
MakePool = Callable[[], Pool]
_STOP_SECONDS = 30.0


@dataclass(slots=True)
class _Running:
    """What is there while the home is open."""

    pool: Pool
    loop: asyncio.AbstractEventLoop
    group: TaskGroup
    leave: anyio.Event


@dataclass(slots=True)
class Home:
    """An open pool that can be used from anywhere."""

    make_pool: MakePool
    _opened: Future[_Running] = field(default_factory=Future["_Running"])
    _closed: Future[None] = field(default_factory=Future[None])
    _thread: threading.Thread | None = None
    _task: asyncio.Task[None] | None = None

    # ── starting and stopping ──

    def start(self) -> None:
        """Open it in a background thread; at the end of the process it is closed if nobody does before."""
        self._thread = threading.Thread(target=asyncio.run, args=(self._live(),), name="mcp-connections", daemon=True)
        self._thread.start()
        self._opened.result()
        atexit.register(self.stop)

    async def astart(self) -> None:
        """Open it on this loop, in a task of its own: any task may stop it. Also waits for one that is opening."""
        if self._task is None and self._thread is None:
            self._task = asyncio.create_task(self._live(), name="mcp-connections")
        await asyncio.shield(asyncio.wrap_future(self._opened))

    async def _live(self) -> None:
        try:
            async with self.make_pool() as pool, anyio.create_task_group() as group:
                leave = anyio.Event()
                self._opened.set_result(_Running(pool, asyncio.get_running_loop(), group, leave))
                await leave.wait()
                group.cancel_scope.cancel()
        except BaseException as error:
            if not self._opened.done():
                self._opened.set_exception(error)
            raise
        finally:
            self._closed.set_result(None)

    def stop(self) -> None:
        """Close every connection and wait until they are gone; harmless when it was done."""
        atexit.unregister(self.stop)
        if self._closed.done():
            return
        running = self._opened.result()
        is_inside = current_loop() is running.loop
        if is_inside and self._thread is None:
            raise _blocking()
        self._leave(running)
        if is_inside:
            return
        try:
            self._closed.result(_STOP_SECONDS)
        except TimeoutError:
            _log.warning("the connections were not closed within %g s", _STOP_SECONDS)
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    async def astop(self) -> None:
        """Close every connection and wait until they are gone, from any task or loop."""
        atexit.unregister(self.stop)
        if self._closed.done():
            return
        running = self._opened.result()
        self._leave(running)
        if self._thread is None or current_loop() is not running.loop:
            await asyncio.shield(asyncio.wrap_future(self._closed))

    def _leave(self, running: _Running) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile, and the pool with it
            running.loop.call_soon_threadsafe(running.leave.set)

    # ── getting there ──

    @property
    def is_open(self) -> bool:
        """Whether calls are possible."""
        return self._opened.done() and not self._closed.done()

    @property
    def is_over(self) -> bool:
        """Whether it was closed."""
        return self._closed.done()

    def call(self, job: Job[T]) -> T:
        """The job's result on the home's loop; blocks this thread, which must not be the loop's own."""
        running = self._running()
        if current_loop() is running.loop:
            raise _blocking()
        future = self._send(job, running)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def acall(self, job: Job[T]) -> T:
        """The job's result, awaited on any loop."""
        running = self._running()
        if current_loop() is running.loop:
            return await job(running.pool)
        return await asyncio.wrap_future(self._send(job, running))

    def _send(self, job: Job[T], running: _Running) -> Future[T]:
        work = self._awaited(job, running.pool)
        try:
            return asyncio.run_coroutine_threadsafe(work, running.loop)
        except RuntimeError:
            work.close()
            raise _closed_pool() from None

    async def _awaited(self, job: Job[T], pool: Pool) -> T:
        try:
            return await job(pool)
        except asyncio.CancelledError:
            if self._closed.done():
                raise _closed_pool() from None
            raise

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have work done until it ends or the home is stopped, in no call's context; from the home's loop only."""
        contextvars.Context().run(self._running().group.start_soon, work)

    def _running(self) -> _Running:
        if not self.is_open:
            raise _closed_pool()
        return self._opened.result()


def _closed_pool() -> McpConnectionError:
    return McpConnectionError("the connection pool is closed", hint="use it inside its 'with' block")


def _blocking() -> McpConnectionError:
    message = "a blocking call from the loop that would have to answer it"
    return McpConnectionError(message, hint="await the asynchronous twin: its name starts with 'a'")


def current_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs this code; None in a plain thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def deliver_on(loop: asyncio.AbstractEventLoop | None, function: Callable[[T], object]) -> Callable[[T], None]:
    """The function, to be called from the home's loop: it runs in this context, on the given loop if there is one."""
    context = contextvars.copy_context()

    def deliver(argument: T) -> None:
        if loop is None or loop is current_loop():
            context.run(function, argument)
            return
        with suppress(RuntimeError):  # the loop is closed: nobody is there to hear it
            loop.call_soon_threadsafe(lambda: context.run(function, argument))

    return deliver
