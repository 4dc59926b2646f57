"""How does an exchange travel back over HTTP? As one JSON body, as server-sent events, or not whole.

Takes what a conversation says and writes it to a response. Which request gets which exchange is ``http_routes``.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

from outfitter.testing.exchange import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    NO_SESSION,
    UNSUPPORTED_VERSION,
    Message,
)
from outfitter.testing.mischief import Raw, Utterance, encode, is_reply
from outfitter.testing.script import Answers

_STATUS: Final = {
    METHOD_NOT_FOUND: 404,
    NO_SESSION: 404,
    **dict.fromkeys((INVALID_REQUEST, INVALID_PARAMS, HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION), 400),
}
_EVENTS: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class Outbox:
    """A stream that keeps what is said until it is written; ``end`` is the end."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Utterance | None] = asyncio.Queue()

    async def say(self, utterance: Utterance) -> None:
        """Keep one utterance."""
        self._queue.put_nowait(utterance)

    def end(self) -> None:
        """Nothing more will be said."""
        self._queue.put_nowait(None)

    async def next(self) -> Utterance | None:
        """Wait for the next utterance; None at the end."""
        return await self._queue.get()

    async def __aiter__(self) -> AsyncIterator[Utterance]:
        """Every utterance until the end."""
        while (utterance := await self.next()) is not None:
            yield utterance


def status_of(message: Message) -> int:
    """The HTTP status of a modern reply."""
    return _STATUS.get(message.get("error", {}).get("code", 0), 200)


async def write_answer(
    request: web.Request, outbox: Outbox, *, answers: Answers, modern: bool, headers: dict[str, str]
) -> web.StreamResponse:
    """Answer with everything the outbox gets: JSON when that is one reply, else events."""
    if answers == "sse":
        return await write_events(request, outbox, (), headers)
    first = await outbox.next()
    if answers == "json":
        while isinstance(first, dict) and not is_reply(first):
            first = await outbox.next()
    elif first is None or _is_message(first):
        return await write_events(request, outbox, () if first is None else (first,), headers)
    second = None if answers == "json" else await outbox.next()
    if first is None or second is not None:
        rest = tuple(item for item in (first, second) if item is not None)
        return await write_events(request, outbox, rest, headers)
    return await _write_json(request, first, modern=modern, headers=headers)


def _is_message(utterance: Utterance) -> bool:
    return isinstance(utterance, dict) and not is_reply(utterance)


async def _write_json(
    request: web.Request, utterance: Utterance, *, modern: bool, headers: dict[str, str]
) -> web.StreamResponse:
    if isinstance(utterance, dict):
        status = status_of(utterance) if modern else 200
        return web.Response(status=status, body=encode(utterance), content_type="application/json", headers=headers)
    response = web.StreamResponse(headers={**headers, "Content-Type": "application/json"})
    await response.prepare(request)
    await _write_raw(response, utterance)
    await response.write_eof()
    return response


async def open_events(request: web.Request, headers: dict[str, str]) -> web.StreamResponse:
    """Begin a stream of events."""
    response = web.StreamResponse(headers={**_EVENTS, **headers})
    await response.prepare(request)
    return response


async def write_events(
    request: web.Request, outbox: Outbox, said: tuple[Utterance, ...], headers: dict[str, str]
) -> web.StreamResponse:
    """Answer with a stream of events until the outbox ends."""
    response = await open_events(request, headers)
    for utterance in said:
        await write_event(response, utterance)
    async for utterance in outbox:
        await write_event(response, utterance)
    await response.write_eof()
    return response


async def write_event(response: web.StreamResponse, utterance: Utterance) -> None:
    """Write one event."""
    raw = utterance if isinstance(utterance, Raw) else Raw(encode(utterance))
    if raw.framed:
        await response.write(b"event: message\ndata: ")
    await _write_raw(response, raw)
    if raw.framed:
        await response.write(b"\n\n")


async def _write_raw(response: web.StreamResponse, raw: Raw) -> None:
    for piece in raw.pieces():
        await response.write(piece)
        await asyncio.sleep(raw.interval)


async def write_half(request: web.Request, outbox: Outbox, *, headers_only: bool) -> web.StreamResponse:
    """Begin the answer and cut the connection, after the headers or in the middle of the reply."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    if not headers_only:
        reply = await outbox.next()
        data = encode(reply) if isinstance(reply, dict) else b""
        await response.write(data[: len(data) // 2])
    reset(request)
    return response


def reset(request: web.Request) -> None:
    """Cut the connection the hard way."""
    transport = request.transport
    if transport is None:
        return
    endpoint = transport.get_extra_info("socket")
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
