"""HTTP with server-sent events, the older transport: one lasting stream down, a POST for every message up.

The stream's first event names where to POST; answers come down the stream and are matched by id. When the stream ends
the wire is lost, and so is everything that still waits. Sending is ``http_client``; streamable HTTP is ``http``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from outfitter.errors import OutfitterError, UpstreamLost
from outfitter.resolution import ArmedServer
from outfitter.upstream.authorizer import Authorizer
from outfitter.upstream.events import EventParser, ServerEvent
from outfitter.upstream.http import Mail, background
from outfitter.upstream.http_client import (
    STREAM_TYPE,
    Endpoint,
    HttpClient,
    StatusRefused,
    decode_messages,
    encode_message,
    is_success,
    is_type,
    read_body,
    read_refusal,
)
from outfitter.upstream.wire import NO_HEADERS, Inbox, Message

_RECEIPT = 64 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """One ask: where its answer goes, and what ends it when the stream does."""

    answer: asyncio.Future[Message]
    scope: anyio.CancelScope


@dataclass(slots=True)
class SseWire:
    """One stream, from the GET that opens it to its end, and the URL that belongs to it.

    ``run`` is the task that opens, reads and closes the stream; everyone else only waits for what it sets.
    """

    _client: HttpClient
    _stream: Endpoint
    _inbox: Inbox
    _tasks: TaskGroup
    _target: Endpoint = field(init=False)
    _mail: Mail = field(init=False)
    _waiting: dict[object, _Waiting] = field(default_factory=dict[object, _Waiting], init=False)
    _lost: OutfitterError | None = field(default=None, init=False)
    _is_open: anyio.Event = field(default_factory=anyio.Event, init=False)
    _is_lost: anyio.Event = field(default_factory=anyio.Event, init=False)

    def __post_init__(self) -> None:
        """Answers to the server's requests go out as notifications do."""
        self._target = self._stream
        self._mail = Mail(self._inbox, self._tasks, self.tell)

    async def ask(self, message: Message, headers: Mapping[str, str] = NO_HEADERS) -> Message:
        """Send a request and wait until its response comes down the stream."""
        self._check()
        with anyio.CancelScope() as scope:
            waiting = _Waiting(asyncio.get_running_loop().create_future(), scope)
            self._waiting[message["id"]] = waiting
            try:
                await self._post(message, headers)
                return await waiting.answer
            finally:
                self._waiting.pop(message["id"], None)
        words = "the stream ended before the answer came" if self._lost is None else self._lost.message
        raise UpstreamLost(words, may_have_run=True, where=self._stream.where)

    async def tell(self, message: Message, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Send a notification, or an answer to the server; nothing comes back."""
        self._check()
        await self._post(message, headers)

    @property
    def lost(self) -> OutfitterError | None:
        """Why the stream is gone; None while it is open."""
        return self._lost

    async def wait_lost(self) -> OutfitterError:
        """Wait until the stream is gone, and say why."""
        await self._is_lost.wait()
        return self._lost or _stream_ended()

    async def wait_open(self) -> None:
        """Wait until the server has named its endpoint; raises what kept it from doing so."""
        limit = self._stream.connect
        with anyio.move_on_after(limit):
            await self._is_open.wait()
        if self._lost is not None:
            raise self._lost
        if not self._is_open.is_set():
            raise UpstreamLost(f"the server named no endpoint within {limit:g} s", where=self._stream.where)

    async def run(self) -> None:
        """Open the stream and deliver what comes down, until it ends; then everyone who waits is told."""
        try:
            await self._read()
            self._lost = _stream_ended()
        except OutfitterError as error:
            self._lost = error
        self._lost.where = self._stream.where
        self._is_open.set()
        self._is_lost.set()
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.scope.cancel()

    def _check(self) -> None:
        if self._lost is not None:
            raise UpstreamLost(self._lost.message, where=self._stream.where)

    async def _post(self, message: Message, headers: Mapping[str, str]) -> None:
        async with self._client.exchange(self._target, "POST", headers, encode_message(message)) as response:
            if is_success(response.status):
                await read_body(response, _RECEIPT)
                return
            error = await read_refusal(response, self._target, self._client.limits, has_session=False)
            words = f"the server refused a message: {self._target.quote(str(error['error'].get('message')))}"
            raise StatusRefused(words, status=response.status)

    async def _read(self) -> None:
        limits = self._client.limits
        async with self._client.exchange(self._stream, "GET", NO_HEADERS) as response:
            if not is_success(response.status):
                await read_refusal(response, self._stream, limits, has_session=False)
            if not is_success(response.status) or not is_type(response, STREAM_TYPE):
                words = f"the server opens no stream: it answered {response.status}"
                raise StatusRefused(words, status=response.status)
            parser = EventParser(limits.event)
            while piece := await response.content.readany():
                for event in parser.feed(piece):
                    self._take(event)

    def _take(self, event: ServerEvent) -> None:
        if event.type == "endpoint" and not self._is_open.is_set():
            self._target = self._stream.sibling(event.data.decode("utf-8", "replace"))
            self._is_open.set()
        elif event.type == "message" and event.data:
            for message in decode_messages(event.data, self._stream):
                self._deliver(message)

    def _deliver(self, message: Message) -> None:
        if "method" in message:
            self._mail.take(message, NO_HEADERS)
            return
        waiting = self._waiting.get(message.get("id"))
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(message)


def _stream_ended() -> UpstreamLost:
    return UpstreamLost("the server ended the stream")


@asynccontextmanager
async def open_sse_wire(
    server: ArmedServer, inbox: Inbox, client: HttpClient, authorizer: Authorizer | None = None
) -> AsyncGenerator[SseWire]:
    """A wire whose stream is open and whose endpoint is known."""
    stream = client.endpoint(server, authorizer)
    async with background() as tasks:
        wire = SseWire(client, stream, inbox, tasks)
        tasks.start_soon(wire.run)
        await wire.wait_open()
        yield wire
