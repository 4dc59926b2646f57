"""What happens to every HTTP request before it is understood? It is counted, read and, on demand, mistreated.

Shared by ``http_routes`` (streamable HTTP) and ``sse_routes`` (HTTP with server-sent events).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast
from weakref import WeakSet

from aiohttp import web
from aiohttp.typedefs import Handler

from outfitter.testing.conversation import Host
from outfitter.testing.exchange import INVALID_REQUEST, PARSE_ERROR, Message, Refusal
from outfitter.testing.faults import Redirect, RequestFault, Reset, Status
from outfitter.testing.http_reply import Outbox, reset, status_of
from outfitter.testing.mischief import encode, strike


class Front:
    """Counts and faults of one server's HTTP side, and the outboxes that are open."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._connections: WeakSet[asyncio.Transport] = WeakSet()
        self._outboxes: set[Outbox] = set()

    def count(self, request: web.Request) -> None:
        """Count a request, and its connection if it is new."""
        self.host.ledger.hits += 1
        if request.transport is not None and request.transport not in self._connections:
            self._connections.add(request.transport)
            self.host.ledger.connections += 1

    def strike(self, message: Message) -> RequestFault | None:
        """The fault that strikes a message, if any."""
        return strike(self.host.script, self.host.ledger, message)

    async def mistreat(self, request: web.Request, fault: RequestFault | None) -> web.StreamResponse | None:
        """The response of a fault that does not even look at the message."""
        match fault:
            case Status():
                return web.Response(status=fault.code, body=fault.body.encode(), headers=dict(fault.headers))
            case Redirect():
                return web.Response(status=fault.code, headers={"Location": fault.to})
            case Reset(at="request"):
                reset(request)
                return web.Response()
            case _:
                return None

    @contextmanager
    def outbox(self) -> Generator[Outbox]:
        """An outbox that ends, at the latest, when the server does."""
        outbox = Outbox()
        self._outboxes.add(outbox)
        try:
            yield outbox
        finally:
            self._outboxes.discard(outbox)

    def close(self) -> None:
        """End every outbox, and with it its response."""
        for outbox in tuple(self._outboxes):
            outbox.end()


@web.middleware
async def forgive_hanging_up(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A client that is gone in the middle of an answer is no error of the server."""
    try:
        return await handler(request)
    except ConnectionError:
        return web.Response()


async def read_message(request: web.Request) -> Message:
    """The JSON-RPC message in the body."""
    try:
        message: Any = json.loads(await request.read())
    except ValueError as error:
        raise Refusal(PARSE_ERROR, "the body is not JSON") from error
    if not isinstance(message, dict):
        raise Refusal(INVALID_REQUEST, "the body must be one message")
    return cast("Message", message)


def surroundings(request: web.Request) -> Message:
    """What the ``headers`` tool shows of a request."""
    return {"headers": {name.lower(): value for name, value in request.headers.items()}}


def refused(refusal: Refusal, id_: object = None) -> web.Response:
    """A refusal as an HTTP response."""
    reply = refusal.reply(id_)
    status = max(status_of(reply), 400)
    return web.Response(status=status, body=encode(reply), content_type="application/json")
