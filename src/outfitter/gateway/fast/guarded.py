"""uvicorn's HTTP protocol for strangers: so many connections, and so long to say what one wants.

uvicorn waits forever for a request that has begun, or never begins. A request that comes whole costs no clock.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Welcome:
    """What is granted to whoever connects."""

    connections: int = 4096
    """At a time; more are told to come back later."""
    request_seconds: float = 20.0
    """From the connection, or the first byte, to the last byte of a request."""
    fast_seconds: float = 0.2
    """After so long a call of the fast lane goes on in the full one, which can tell progress and time out."""


class GuardedProtocol(HttpToolsProtocol):
    """One client's connection, closed when its request does not come."""

    def __init__(self, welcome: Welcome, **given: Any) -> None:  # noqa: ANN401 - uvicorn's own arguments
        """Keep the limits; the rest is uvicorn's."""
        super().__init__(**given)
        self._welcome = welcome
        self._clock: asyncio.TimerHandle | None = None
        self.is_reading = True

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Take the connection, or send it away when there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self._welcome.connections:
            transport.write(_FULL)
            transport.close()
        else:
            self._start_clock()

    def data_received(self, data: bytes) -> None:
        """Read; the clock runs while a request is not whole."""
        super().data_received(data)
        if self.is_reading and self._clock is None:
            self._start_clock()
        elif not self.is_reading:
            self._stop_clock()

    def on_message_begin(self) -> None:
        """A request begins."""
        self.is_reading = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """A request is whole."""
        self.is_reading = False
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _start_clock(self) -> None:
        self._clock = self.loop.call_later(self._welcome.request_seconds, self._give_up)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _give_up(self) -> None:
        self._clock = None
        if not self.transport.is_closing():
            self.transport.close()
