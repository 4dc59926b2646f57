"""The pool for code without a loop: one background loop, calls from any thread.

Each call blocks its own thread until the answer is there. Called from the background loop itself it would wait for
itself forever, so that is an error.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from outfitter.errors import UpstreamDown
from outfitter.resolution import ArmedServer
from outfitter.upstream.link import Link
from outfitter.upstream.pool import Pool
from outfitter.upstream.wire import Message

T = TypeVar("T")


@dataclass(slots=True)
class SyncPool:
    """A pool on a background loop; a context manager that closes everything it opened."""

    make_pool: Callable[[], Pool] = Pool
    _stack: ExitStack = field(default_factory=ExitStack)
    _portal: BlockingPortal | None = None
    _pool: Pool | None = None
    _thread: int = 0

    def __enter__(self) -> Self:
        """Start the loop and open the pool in it."""
        with ExitStack() as opening:
            self._portal = opening.enter_context(start_blocking_portal("asyncio"))
            self._thread = self._portal.call(threading.get_ident)
            self._pool = opening.enter_context(self._portal.wrap_async_context_manager(self.make_pool()))
            self._stack = opening.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        """Close every connection and end the loop."""
        self._pool = None
        self._stack.close()
        self._portal = None

    def use(self, server: ArmedServer, job: Callable[[Link], Awaitable[T]]) -> T:
        """The job's result on a ready link to the server."""
        if self._portal is None or self._pool is None:
            raise UpstreamDown("the pool is closed", retry_after=0.0)
        if threading.get_ident() == self._thread:
            message = "a blocking call from the loop that would have to answer it; use the asynchronous pool there"
            raise UpstreamDown(message, retry_after=0.0)
        return self._portal.call(self._use, self._pool, server, job)

    @staticmethod
    async def _use(pool: Pool, server: ArmedServer, job: Callable[[Link], Awaitable[T]]) -> T:
        return await pool.connect(server).use(job)

    def list_tools(self, server: ArmedServer) -> list[Message]:
        """Every tool of the server."""
        return self.use(server, lambda link: link.list_tools())

    def call_tool(self, server: ArmedServer, name: str, arguments: Message) -> Message:
        """The result of a tool call."""
        return self.use(server, lambda link: link.call_tool(name, arguments))
