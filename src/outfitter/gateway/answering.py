"""ASGI applications on sockets that are bound already: uvicorn as part of a program that has a life of its own.

uvicorn would take the signals of the process; here whoever runs it says when it ends. ``serving`` binds and has the
gateway answer; whatever else listens in a process of ours is made to answer here, too.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import uvicorn

from outfitter.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Listener:
    """An application and the socket it answers on."""

    app: Any
    """An ASGI application."""
    bound: socket.socket
    drain_seconds: int = 10
    """For how long requests that are under way may go on at the end."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More of uvicorn's own."""


def bind_loopback(what: str) -> socket.socket:
    """A socket on a free port of this machine's own address; Unavailable, with what it was for, when there is none."""
    bound = socket.socket(socket.AF_INET)
    try:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
    except OSError as error:
        bound.close()
        raise Unavailable(f"{what} finds no free port: {error.strerror}") from None
    return bound


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take none."""
        yield


@asynccontextmanager
async def answering(*listeners: Listener) -> AsyncGenerator[None]:
    """Have all of them answer as long as the block lasts; at its end no new requests are taken."""
    servers = [_server(one) for one in listeners]
    async with anyio.create_task_group() as group:
        for server, one in zip(servers, listeners, strict=True):
            group.start_soon(server.serve, [one.bound])
        while not all(server.started for server in servers):  # noqa: ASYNC110 - uvicorn has no event for it
            await anyio.sleep(0.005)
        try:
            yield
        finally:
            for server in servers:
                server.should_exit = True


def _server(one: Listener) -> _Server:
    return _Server(
        uvicorn.Config(
            one.app, lifespan="off", access_log=False, log_level="warning", ws="none",
            server_header=False, date_header=False, timeout_graceful_shutdown=one.drain_seconds, **one.options,
        )
    )  # fmt: skip
