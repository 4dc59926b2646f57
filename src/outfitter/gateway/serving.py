"""The gateway on a port: uvicorn with the fast parser and loop, loopback unless told otherwise.

The port is bound before anything is started, so that a port in use is a clear error and nothing is half begun.
Stopping takes no new requests and lets those under way end, for a while.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import uvicorn

from outfitter.errors import Forbidden, Unavailable
from outfitter.gateway.fast.guarded import GuardedProtocol, Welcome
from outfitter.gateway.fast.lane import Lane, Record
from outfitter.gateway.http_front import HttpFront

_DRAIN_SECONDS = 10
_BACKLOG = 2048
WELCOME = Welcome()


@dataclass(frozen=True, slots=True)
class Address:
    """Where the gateway listens; port 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = 8700
    tls_cert: Path | None = None
    """A file with the certificate and those above it; with it the gateway speaks HTTPS."""
    tls_key: Path | None = None
    """A file with its key, where it is not in the same file."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls_cert is None else 'https'}://{host}:{self.port}"

    def url(self, agent: str, server: str | None = None) -> str:
        """The endpoint of an agent."""
        return f"{self.origin}/mcp/{agent}" + (f"/{server}" if server else "")


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take none."""
        yield


@asynccontextmanager
async def serving(
    front: HttpFront,
    address: Address,
    *,
    record: Record | None = None,
    is_fast: bool = True,
    welcome: Welcome = WELCOME,
) -> AsyncGenerator[Address]:
    """Answer on the port as long as the block lasts; Forbidden when strangers could come in without a token.

    ``record`` is told of every call that the fast lane answers by itself.
    """
    if front.gate.tokens is None and not address.is_loopback:
        hint = "leave --open out, or listen on 127.0.0.1"
        raise Forbidden(f"without tokens the gateway listens on loopback only, not on {address.host}", hint=hint)
    bound = _bind(address)
    lane = Lane(front.desk, front.gate, record)
    server = _Server(
        uvicorn.Config(
            cast("Any", front), http=_protocol(lane if is_fast else None, welcome),
            lifespan="off", access_log=False, log_level="warning", ws="none",
            server_header=False, date_header=False, timeout_graceful_shutdown=_DRAIN_SECONDS,
            ssl_certfile=address.tls_cert, ssl_keyfile=address.tls_key,
        )
    )  # fmt: skip
    with closing(bound):
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [bound])
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await anyio.sleep(0.005)
            try:
                yield replace(address, port=bound.getsockname()[1])
            finally:
                server.should_exit = True
    lane.close()


def _protocol(lane: Lane | None, welcome: Welcome) -> Any:  # noqa: ANN401 - uvicorn wants a class and takes what makes one
    """The protocol with the fast lane; without it when uvicorn is not the one that the lane was written for."""
    from outfitter.gateway.fast.protocol import FastProtocol, Watch, fits

    if lane is None or not fits():
        return partial(GuardedProtocol, welcome)
    return partial(FastProtocol, lane, Watch(welcome.fast_seconds), welcome)


def _bind(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        told = f"cannot listen on {address.host}, port {address.port}: {error.strerror}"
        raise Unavailable(told, hint="choose another with --port") from None
    bound.listen(_BACKLOG)
    return bound
