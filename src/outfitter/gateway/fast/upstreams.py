"""Connections to plain HTTP servers that are kept and used again: bytes out, one response in, at a time.

A response is collected until whoever asked for it says otherwise: ``Adopted`` makes a stream of it that the HTTP wire
can read like any response, from its first byte or from where it is. Where may be connected to is the guard's decision.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import httptools

from outfitter.gateway.fast.heads import Heads

MOST_PER_HOST = 256
_MOST_HEADS = 256
_KEEP_SECONDS = 4.0
_OK = 200
_MUCH = 256 * 1024
FindAddresses = Callable[[str, int], Awaitable[list[str]]]


class _Said(NamedTuple):
    """What the head of a response says."""

    status: int
    headers: list[tuple[bytes, bytes]]
    is_plain: bool


class Upstream(asyncio.Protocol):
    """One connection. ``on_change`` is called when a response has its head, is whole, or is lost."""

    def __init__(self, home: Home) -> None:
        """Belong to a home, to which it returns."""
        self.home = home
        self.transport: asyncio.Transport | None = None
        self.on_change: Callable[[Upstream], None] | None = None
        self.idle_since = 0.0
        self.is_lost = False
        self.pieces: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)
        self._first: bytes | None = None
        self.begin()

    def begin(self) -> None:
        """Be ready for the next response."""
        self.status = 0
        self.is_plain = True
        """Whether the response is JSON and nothing else, as far as its head has come."""
        self.headers: list[tuple[bytes, bytes]] = []
        self.size = 0
        self.is_whole = self.may_stay = False
        if self.pieces:
            self.pieces = []

    def send(self, data: bytes, on_change: Callable[[Upstream], None]) -> None:
        """Write a whole request."""
        self.on_change = on_change
        self._first = None
        cast("asyncio.Transport", self.transport).write(data)

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header."""
        return next((value for key, value in self.headers if key.lower() == name), None)

    def body(self) -> bytes:
        """What has come of the body."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)

    def end(self) -> None:
        """The response is not needed any more: keep the connection if it is whole, close it otherwise."""
        self.on_change = None
        if self.is_whole and self.may_stay and not self.is_lost:
            self.begin()
            self.home.keep(self)
        elif self.transport is not None:
            self.transport.abort()

    # ── what the loop calls ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the handle."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take a piece; one that nobody waits for ends the connection."""
        if self.on_change is None or self.is_whole:
            self._lose()
            return
        if self._first is None:
            known = self.home.heads.find(data)
            if known is not None:
                (self.status, self.headers, self.is_plain), body = known
                self.pieces.append(body)
                self.is_whole = self.may_stay = True
                self.on_change(self)
                return
            self._first = data
        else:
            self._first = b""
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not self.is_whole:
                self._lose()
                return
            self.may_stay = False
        if self.status and self.on_change is not None:
            self.on_change(self)

    def _lose(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it is gone makes no difference
        """Tell whoever waits, once; a response without a length ends here."""
        if self.is_lost:
            return
        self.is_lost = True
        self.home.forget(self)
        if self.status and not self.is_whole and self._ends_by_closing():
            self.is_whole = True
        if self.on_change is not None:
            self.on_change(self)

    def _ends_by_closing(self) -> bool:
        return self.header(b"content-length") is None and self.header(b"transfer-encoding") is None

    # ── what the parser calls ──

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole; an interim one is passed over."""
        status = self._parser.get_status_code()
        if status < 200:  # noqa: PLR2004 - what is below is said before the response
            self.headers = []
            self._first = b""
            return
        self.status = status
        kind = self.header(b"content-type") or b""
        is_json = kind.lower().startswith(b"application/json")
        self.is_plain = status == _OK and is_json and self.header(b"content-encoding") is None

    def on_body(self, body: bytes) -> None:
        """Keep a piece; a reader that is slow stops the server."""
        self.pieces.append(body)
        self.size += len(body)

    def on_message_complete(self) -> None:
        """The response is whole."""
        if not self.status:
            return
        self.is_whole = True
        self.may_stay = self._parser.should_keep_alive()
        if self._first and self.may_stay and self.is_plain:
            self.home.heads.keep(self._first, self.size, _Said(self.status, self.headers, self.is_plain))


@dataclass(slots=True, eq=False)
class Home:
    """The connections to one host and port."""

    host: str
    port: int
    find_addresses: FindAddresses
    seconds: float
    heads: Heads[_Said] = field(default_factory=lambda: Heads[_Said](_MOST_HEADS))
    _idle: list[Upstream] = field(default_factory=list[Upstream])
    _open: set[Upstream] = field(default_factory=set[Upstream])

    @property
    def is_full(self) -> bool:
        """Whether no more may be opened."""
        return len(self._open) >= MOST_PER_HOST

    def take(self, now: float) -> Upstream | None:
        """A connection that can be used at once; those that were idle for long are closed instead."""
        while self._idle:
            upstream = self._idle.pop()
            transport = upstream.transport
            if transport is None or upstream.is_lost or transport.is_closing():
                continue
            if now - upstream.idle_since <= _KEEP_SECONDS:
                return upstream
            transport.abort()
        return None

    def keep(self, upstream: Upstream) -> None:
        """Take a connection back."""
        upstream.idle_since = time.monotonic()
        self._idle.append(upstream)

    def forget(self, upstream: Upstream) -> None:
        """It is gone."""
        self._open.discard(upstream)
        if upstream in self._idle:
            self._idle.remove(upstream)

    async def dial(self) -> Upstream | None:
        """A new connection to the first address that answers; None when none does."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.seconds):
                for address in await self.find_addresses(self.host, self.port):
                    try:
                        _, upstream = await loop.create_connection(lambda: Upstream(self), address, self.port)
                    except OSError:
                        continue
                    self._open.add(upstream)
                    return upstream
        except OSError:
            return None
        return None

    def sweep(self, now: float) -> None:
        """Close what was idle for long."""
        for upstream in tuple(self._idle):
            if now - upstream.idle_since > _KEEP_SECONDS and upstream.transport is not None:
                self._idle.remove(upstream)
                upstream.transport.abort()

    def close(self) -> None:
        """Close everything."""
        for upstream in tuple(self._open):
            if upstream.transport is not None:
                upstream.transport.abort()


@dataclass(slots=True, eq=False)
class _Names:
    """Headers by any spelling of their name."""

    upstream: Upstream

    def get(self, name: str, default: str | None = None) -> str | None:
        """The first value."""
        found = self.upstream.header(name.lower().encode())
        return default if found is None else found.decode("latin-1")


class Adopted:
    """A response as the HTTP wire reads it, whatever has come of it so far."""

    def __init__(self, upstream: Upstream) -> None:
        """Take the response over from whoever asked for it."""
        self._upstream = upstream
        self._changed = asyncio.Event()
        self._is_paused = False
        self._is_ended = False
        upstream.on_change = self._wake
        self.headers = _Names(upstream)
        self.content = self

    def _wake(self, upstream: Upstream) -> None:
        self._changed.set()
        if upstream.size > _MUCH and not self._is_paused and upstream.transport is not None and not upstream.is_lost:
            self._is_paused = True
            upstream.transport.pause_reading()

    def __await__(self) -> Generator[Any, None, Adopted]:
        """Itself, when the head has come; OSError when it never will."""
        return self._head().__await__()

    async def _head(self) -> Adopted:
        try:
            while not self._upstream.status:
                await self._next()
        except BaseException:
            self.close()
            raise
        return self

    async def _next(self) -> None:
        if self._upstream.is_lost:
            raise ConnectionResetError("the connection was lost")
        await self._changed.wait()
        self._changed.clear()

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._upstream.status

    def at_eof(self) -> bool:
        """Whether everything was read."""
        return self._upstream.is_whole and not self._upstream.pieces

    async def readany(self) -> bytes:
        """What has come; nothing at the end; OSError when the rest is lost."""
        upstream = self._upstream
        while not upstream.pieces:
            if upstream.is_whole:
                return b""
            await self._next()
        data = b"".join(upstream.pieces)
        upstream.pieces.clear()
        upstream.size = 0
        if self._is_paused and upstream.transport is not None and not upstream.is_lost:
            self._is_paused = False
            upstream.transport.resume_reading()
        return data

    def cancel(self) -> None:
        """Nobody will read it."""
        self.close()

    def close(self) -> None:
        """Done with it."""
        if not self._is_ended:
            self._is_ended = True
            if self._upstream.is_whole:
                self._upstream.pieces.clear()
            self._upstream.end()
