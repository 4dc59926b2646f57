"""Streamable HTTP, both eras: every message is one POST, answered by JSON or by a stream of events.

One failing request harms no other: each has its own exchange, and nothing is shared but the pool. Sending and judging
statuses is ``http_client``, reading events is ``events``; the older transport with one lasting stream is ``sse``.

What lives how long: an exchange as long as its ask; the tasks that answer the server's own requests and the stream of
the handshake era that ``listen`` opens, as long as the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio.abc import TaskGroup

from outfitter.errors import OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.resolution import ArmedServer
from outfitter.upstream.authorizer import Authorizer
from outfitter.upstream.events import EventParser
from outfitter.upstream.http_client import (
    STREAM_TYPE,
    AuthWanted,
    Endpoint,
    HttpClient,
    HttpLimits,
    StatusRefused,
    decode_messages,
    encode_message,
    is_success,
    is_type,
    read_body,
    read_refusal,
)
from outfitter.upstream.wire import NO_HEADERS, STREAM_CLOSED, Inbox, Message, SessionLost

if TYPE_CHECKING:
    import aiohttp

__all__ = [
    "AuthWanted",
    "HttpClient",
    "HttpLimits",
    "HttpWire",
    "Mail",
    "StatusRefused",
    "background",
    "open_http_wire",
]

_SESSION_HEADER = "Mcp-Session-Id"
_ROUTING_HEADERS = ("mcp-method", "mcp-name", "mcp-param-")
_OPEN_QUESTIONS = 64
_RESUMES = 2
_LINGER_SECONDS = 0.02
_LINGER_FAILURES = 3
_END_SECONDS = 5.0
_PAUSE, _SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 0.02, 30.0
_DOUBLINGS = 10

Send: TypeAlias = Callable[[Message, Mapping[str, str]], Awaitable[None]]


@asynccontextmanager
async def background() -> AsyncGenerator[TaskGroup]:
    """Tasks that end with the block; an error of the block leaves it as it is and not inside a group."""
    tasks = anyio.create_task_group()
    await tasks.__aenter__()
    try:
        yield tasks
    finally:
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(None, None, None)


class Mail:
    """Hands what the server says by itself to the inbox, and carries the answers to its requests back."""

    def __init__(self, inbox: Inbox, tasks: TaskGroup, send: Send) -> None:
        """Answer in ``tasks``, because an answer may wait for a person and the stream may not."""
        self._inbox = inbox
        self._tasks = tasks
        self._send = send
        self._open = 0

    def take(self, message: Message, headers: Mapping[str, str], during: object = None) -> None:
        """Deliver one message, said while ``during`` was asked; ``headers`` go with the answer, if it wants one."""
        if "id" not in message:
            self._inbox.notice(message, during)
            return
        if self._open >= _OPEN_QUESTIONS:
            raise ProtocolViolation(f"the server waits for more than {_OPEN_QUESTIONS} answers at once")
        self._open += 1
        self._tasks.start_soon(self._answer, message, headers, during)

    async def _answer(self, message: Message, headers: Mapping[str, str], during: object) -> None:
        try:
            answer = await self._inbox.answer(message, during)
            with suppress(OutfitterError):  # the server misses its answer and says so in the call that asked for it
                await self._send(answer, headers)
        finally:
            self._open -= 1


@dataclass(slots=True)
class _Trail:
    """How far a stream was read: enough to go on where it broke."""

    headers: Mapping[str, str]
    request_id: object = None
    last_id: str = ""
    retry: float | None = None

    def pause(self, failures: int = 0) -> float:
        """How long to wait before the next try: what the server asked for, longer after each failure."""
        wanted = _PAUSE if self.retry is None else self.retry
        return min(max(wanted * 2 ** min(failures, _DOUBLINGS), _SHORTEST_PAUSE), _LONGEST_PAUSE)

    def resume_headers(self) -> dict[str, str]:
        """The headers of the GET that goes on."""
        return {**self.headers, "Last-Event-ID": self.last_id} if self.last_id else dict(self.headers)


@dataclass(slots=True)
class HttpWire:
    """One server's endpoint. ``session_id`` is what the answer to ``initialize`` named; the link sends it."""

    _client: HttpClient
    _endpoint: Endpoint
    _inbox: Inbox
    _tasks: TaskGroup
    session_id: str | None = None
    _mail: Mail = field(init=False)
    _listening: anyio.CancelScope | None = field(default=None, init=False)
    _lingered_in_vain: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Answers to the server's requests go out as notifications do."""
        self._mail = Mail(self._inbox, self._tasks, self.tell)

    @property
    def endpoint(self) -> Endpoint:
        """Where its requests go."""
        return self._endpoint

    @property
    def client(self) -> HttpClient:
        """Who sends them."""
        return self._client

    async def ask(
        self, message: Message, headers: Mapping[str, str] = NO_HEADERS,
        sent: Awaitable[aiohttp.ClientResponse] | None = None,
    ) -> Message:  # fmt: skip
        """Send a request and wait for its response message; cancelling closes the response stream at once."""
        trail = _Trail(_without_routing(headers), message["id"])
        body = encode_message(message)
        async with self._client.exchange(self._endpoint, "POST", headers, body, sent) as response:
            if message.get("method") == "initialize" and is_success(response.status):
                self.session_id = response.headers.get(_SESSION_HEADER)
            if not is_success(response.status):
                return {**await self._refusal(response, headers), "id": message["id"]}
            if not is_type(response, STREAM_TYPE):
                return await self._read_json(response, trail)
            answer = await self._read_stream(response, trail)
        if answer is not None:
            return answer
        if trail.last_id:
            self._inbox.notice({"jsonrpc": "2.0", "method": STREAM_CLOSED}, message["id"])
        # Only the handshake era can go on with a broken stream; the modern one names its method in a header.
        return await self._resume(trail, tries=_RESUMES if len(trail.headers) == len(headers) else 0)

    async def tell(self, message: Message, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Send a notification, or an answer to the server; nothing comes back."""
        async with self._client.exchange(self._endpoint, "POST", headers, encode_message(message)) as response:
            if is_success(response.status):
                await self._linger(response)
                return
            error = (await self._refusal(response, headers))["error"]
            words = f"the server refused a notification: {self._endpoint.quote(str(error.get('message')))}"
            raise StatusRefused(words, status=response.status)

    @property
    def lost(self) -> OutfitterError | None:
        """Never: there is no lasting connection that could be lost."""
        return None

    async def wait_lost(self) -> OutfitterError:
        """Wait forever: there is no lasting connection that could be lost."""
        while True:
            await anyio.sleep_forever()

    async def listen(self, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Open the handshake era's stream for what the server says by itself, in the background, instead of the last.

        It is opened again whenever it ends, and given up quietly when the server has none (405) or refuses.
        """
        if self._listening is not None:
            self._listening.cancel()
        self._listening = anyio.CancelScope()
        self._tasks.start_soon(self._keep_listening, self._listening, _Trail(_without_routing(headers)))

    async def end_session(self, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Tell the server that the session is over, without insisting; stops listening."""
        if self._listening is not None:
            self._listening.cancel()
        with anyio.move_on_after(_END_SECONDS), suppress(OutfitterError):
            async with self._client.exchange(self._endpoint, "DELETE", headers) as response:
                await self._linger(response)

    async def _refusal(self, response: aiohttp.ClientResponse, headers: Mapping[str, str]) -> Message:
        has_session = any(name.lower() == _SESSION_HEADER.lower() for name in headers)
        return await read_refusal(response, self._endpoint, self._client.limits, has_session=has_session)

    async def _read_json(self, response: aiohttp.ClientResponse, trail: _Trail) -> Message:
        body = await read_body(response, self._client.limits.body)
        if not body:
            raise ProtocolViolation(f"the server answered a request with {response.status} and nothing else")
        answer = self._sort(decode_messages(body, self._endpoint), trail)
        if answer is None:
            raise ProtocolViolation(f"the server did not answer the request: {self._endpoint.quote(body)}")
        return answer

    def _sort(self, messages: list[Message], trail: _Trail) -> Message | None:
        """The response that is waited for, if it is among them; what the server says by itself goes to the inbox."""
        answer: Message | None = None
        for message in messages:
            if "method" in message:
                self._mail.take(message, trail.headers, trail.request_id)
            elif message.get("id") == trail.request_id and trail.request_id is not None:
                answer = message
            elif message.get("id") is None and "error" in message:
                answer = {**message, "id": trail.request_id}
        return answer

    async def _read_stream(self, response: aiohttp.ClientResponse, trail: _Trail) -> Message | None:
        """The response that is waited for; None when the stream ends or breaks before it."""
        import aiohttp

        parser = EventParser(self._client.limits.event)
        try:
            while piece := await response.content.readany():
                for event in parser.feed(piece):
                    is_message = event.data and event.type == "message"
                    answer = self._sort(decode_messages(event.data, self._endpoint), trail) if is_message else None
                    if answer is not None and trail.request_id is not None:
                        await self._linger(response)
                        return answer
                trail.last_id = parser.last_id or trail.last_id
                trail.retry = trail.retry if parser.retry is None else parser.retry
        except (aiohttp.ClientError, OSError):
            return None
        return None

    async def _linger(self, response: aiohttp.ClientResponse) -> None:
        """Let the server end its response, for a moment: only then can the connection be used again."""
        import aiohttp

        if response.content.at_eof() or self._lingered_in_vain >= _LINGER_FAILURES:
            return
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                while await response.content.readany():
                    pass
            self._lingered_in_vain = 0
        except TimeoutError:
            self._lingered_in_vain += 1
        except (aiohttp.ClientError, OSError):
            return

    async def _resume(self, trail: _Trail, tries: int) -> Message:
        """Go on with a stream that ended too early, while each try brings something new."""
        failures = 0
        while trail.last_id and failures < tries:
            await anyio.sleep(trail.pause())
            seen = trail.last_id
            try:
                answer = await self._follow(trail)
            except UpstreamLost:
                answer = None
            except StatusRefused:
                break
            if answer is not None:
                return answer
            failures = failures + 1 if trail.last_id == seen else 0
        words = "the stream ended before the answer came"
        raise UpstreamLost(words, may_have_run=True, where=self._endpoint.where)

    async def _follow(self, trail: _Trail) -> Message | None:
        """Read a stream that a GET opens, to its end or to the response that is waited for."""
        async with self._client.exchange(self._endpoint, "GET", trail.resume_headers()) as response:
            if is_success(response.status) and is_type(response, STREAM_TYPE):
                return await self._read_stream(response, trail)
            if not is_success(response.status):
                await self._refusal(response, trail.headers)
            words = f"the server opens no stream: it answered {response.status}"
            raise StatusRefused(words, status=response.status)

    async def _keep_listening(self, scope: anyio.CancelScope, trail: _Trail) -> None:
        """The whole life of one listener: ends when it is cancelled, refused or without credentials."""
        failures = 0
        with scope:
            while True:
                seen = trail.last_id
                try:
                    await self._follow(trail)
                    failures = 0 if trail.last_id != seen else failures + 1
                except (StatusRefused, AuthWanted, SessionLost):
                    return
                except OutfitterError:
                    failures += 1
                await anyio.sleep(trail.pause(failures))


def _without_routing(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers that hold for the whole connection, without what belongs to one request."""
    return {name: value for name, value in headers.items() if not name.lower().startswith(_ROUTING_HEADERS)}


@asynccontextmanager
async def open_http_wire(
    server: ArmedServer, inbox: Inbox, client: HttpClient, authorizer: Authorizer | None = None
) -> AsyncGenerator[HttpWire]:
    """A wire to the server; nothing is sent yet. DestinationForbidden when its URL may not be used."""
    endpoint = client.endpoint(server, authorizer)
    async with background() as tasks:
        yield HttpWire(client, endpoint, inbox, tasks)
