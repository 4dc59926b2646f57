"""How answers go out: plain JSON, or events once something was said before the answer.

A client that names events first in its ``Accept`` gets events always.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import anyio
import msgspec

from outfitter.gateway.faults import INVALID_REQUEST, PARSE_ERROR
from outfitter.gateway.views import as_object
from outfitter.gateway.words import Final, Replay, Words
from outfitter.upstream import Message

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_KEEP_ALIVE_SECONDS = 15.0
_RETRY_MILLISECONDS = 500
_STILL_HERE = b": still here\n\n"
_OK = 200
_EVENT_STREAM = "text/event-stream"


async def send_body(send: Send, status: int, body: bytes, *headers: tuple[str, str]) -> None:
    """One whole response."""
    named = [*headers, ("content-length", str(len(body)))]
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in named]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, message: Message, *headers: tuple[str, str]) -> None:
    """One JSON response."""
    await send_body(send, status, msgspec.json.encode(message), ("content-type", "application/json"), *headers)


def prefers_events(accepted: str | None) -> bool:
    """Whether a client names events before JSON."""
    kinds = [part.partition(";")[0].strip().lower() for part in (accepted or "").split(",")]
    return kinds[0] == _EVENT_STREAM and "application/json" in kinds[1:]


async def send_stream(send: Send, words: Words, *, has_events: bool = False) -> None:
    """Plain JSON when the last word comes first; a stream of events otherwise, or when events are wanted."""
    first = await words.hear()
    if first is None:
        return
    is_last = isinstance(first, Final)
    if isinstance(first, Final) and (not has_events or first.status != _OK):
        await send_json(send, first.status, first.message)
        return
    await begin_events(send)
    await send_event(send, first.message if isinstance(first, Final) else first)
    if not is_last:
        await pour(send, words)
    await send({"type": "http.response.body", "body": b""})


async def send_replay(send: Send, replay: Replay, turn: int, after: int | None, *, is_primed: bool) -> None:
    """What a stream says after a number, each with its number; a new stream first says where it begins."""
    if after is None and is_primed:
        primer = f"id: {replay.number}-0\nretry: {_RETRY_MILLISECONDS}\ndata: \n\n"
        await send({"type": "http.response.body", "body": primer.encode(), "more_body": True})
    place = after or 0
    while True:
        with anyio.move_on_after(_KEEP_ALIVE_SECONDS) as waiting:
            heard = await replay.hear(place, turn)
            if heard is None:
                break
            place, word = heard
            await send_event(send, word.message if isinstance(word, Final) else word, f"{replay.number}-{place}")
        if waiting.cancelled_caught:
            await send({"type": "http.response.body", "body": _STILL_HERE, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def begin_events(send: Send, *headers: tuple[str, str]) -> None:
    """Begin a stream of events that no proxy holds back."""
    named = [("content-type", _EVENT_STREAM), ("cache-control", "no-store"), ("x-accel-buffering", "no"), *headers]
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in named]
    await send({"type": "http.response.start", "status": 200, "headers": encoded})


async def send_event(send: Send, message: Message, ident: str = "") -> None:
    """One message as an event, with an id if it can be asked for again."""
    named = f"id: {ident}\n".encode() if ident else b""
    data = named + b"event: message\ndata: " + msgspec.json.encode(message) + b"\n\n"
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def pour(send: Send, words: Words) -> None:
    """Every word until the last, or until nothing more can come; a comment now and then keeps the way open."""
    while True:
        with anyio.move_on_after(_KEEP_ALIVE_SECONDS) as waiting:
            word = await words.hear()
            if word is None:
                return
            await send_event(send, word.message if isinstance(word, Final) else word)
            if isinstance(word, Final):
                return
        if waiting.cancelled_caught:
            await send({"type": "http.response.body", "body": _STILL_HERE, "more_body": True})


async def wait_gone(receive: Receive) -> None:
    """Wait until the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def decode(body: bytes) -> Message | Final:
    """The message of a body, or the answer to something that is none."""
    try:
        decoded: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return Final({"jsonrpc": "2.0", "id": None, "error": {"code": PARSE_ERROR, "message": "Parse error"}}, 400)
    message = as_object(decoded)
    is_request = isinstance(message.get("method"), str) and isinstance(message.get("params", {}), dict)
    is_response = "method" not in message and "id" in message and ("result" in message or "error" in message)
    if message.get("jsonrpc") != "2.0" or not (is_request or is_response) or message.get("id", 0) is None:
        error = {"code": INVALID_REQUEST, "message": "Invalid request"}
        return Final({"jsonrpc": "2.0", "id": None, "error": error}, 400)
    return message


def meant(body: bytes) -> Message:
    """What a body that is no message still says of itself; empty when it cannot be read."""
    try:
        return as_object(msgspec.json.decode(body))
    except (msgspec.DecodeError, RecursionError):
        return {}
