"""The gateway on a port: uvicorn with the fast parser and loop, loopback unless told otherwise.

The port is bound before anything is started, so that a port in use is a clear error and nothing is half begun.
Stopping takes no new requests and lets those under way end, for a while. Several workers share a port by a socket each,
and have a private one for what they pass on to each other.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from outfitter.errors import Forbidden, Invalid, Unavailable
from outfitter.gateway.answering import Listener, answering
from outfitter.gateway.fast.guarded import GuardedProtocol, Welcome
from outfitter.gateway.fast.lane import Lane
from outfitter.gateway.http_front import HttpFront

_DRAIN_SECONDS = 10
_BACKLOG = 2048
_OWN_FILES = 32
"""What the gateway itself needs to stay alive: journal, database, catalog."""
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


@asynccontextmanager
async def serving(
    front: HttpFront,
    address: Address,
    *,
    is_fast: bool = True,
    welcome: Welcome = WELCOME,
) -> AsyncGenerator[Address]:
    """Answer on the port as long as the block lasts; Forbidden when strangers could come in without a token."""
    _refuse_strangers(address, is_open=front.gate.tokens is None)
    with ExitStack() as sockets:
        bound = sockets.enter_context(closing(_bind(address, is_shared=front.relay is not None)))
        lane = Lane(front.desk, front.gate)
        protocol = _protocol(lane if is_fast else None, _within_files(welcome))
        listeners = [_listener(front, bound, protocol, address)]
        if front.relay is not None:
            private = sockets.enter_context(front.relay.listening())
            listeners.append(_listener(replace(front, relay=None), private, protocol, Address()))
        async with answering(*listeners):
            yield replace(address, port=bound.getsockname()[1])
        lane.close()


@contextmanager
def holding(address: Address, *, is_open: bool) -> Generator[Address]:
    """Hold a port that workers share, as long as the block lasts; Unavailable when it is in use or cannot be shared.

    Nobody listens on it but the workers.
    """
    _refuse_strangers(address, is_open=is_open)
    with closing(_bind(address)) as first:
        # Sharing with everybody who shares would hide that the port is in use: this one does not share.
        address = replace(address, port=first.getsockname()[1])
    with closing(_bind(address, is_shared=True, is_heard=False)):
        yield address


def _refuse_strangers(address: Address, *, is_open: bool) -> None:
    _check_certificate(address)
    if is_open and not address.is_loopback:
        hint = "leave --open out, or listen on 127.0.0.1"
        raise Forbidden(f"without tokens the gateway listens on loopback only, not on {address.host}", hint=hint)


def _check_certificate(address: Address) -> None:
    """Refuse a certificate that cannot be used before anything listens."""
    if address.tls_cert is None:
        return
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(address.tls_cert, address.tls_key)
    except OSError as error:
        why = "it is not one, or its key is another's" if isinstance(error, ssl.SSLError) else error.strerror
        raise Invalid(
            f"the certificate cannot be used: {why}",
            where=str(address.tls_cert),
            hint="--tls-cert and --tls-key take PEM files",
        ) from None


def _listener(front: HttpFront, bound: socket.socket, protocol: Any, address: Address) -> Listener:  # noqa: ANN401 - see _protocol
    options = {"http": protocol, "ssl_certfile": address.tls_cert, "ssl_keyfile": address.tls_key}
    return Listener(front, bound, _DRAIN_SECONDS, options)


def _protocol(lane: Lane | None, welcome: Welcome) -> Any:  # noqa: ANN401 - uvicorn wants a class and takes what makes one
    """The protocol with the fast lane; without it when uvicorn is not the one that the lane was written for."""
    from outfitter.gateway.fast.protocol import FastProtocol, Watch, fits

    if lane is None or not fits():
        return partial(GuardedProtocol, welcome)
    return partial(FastProtocol, lane, Watch(welcome.fast_seconds), welcome)


def _within_files(welcome: Welcome) -> Welcome:
    """No more connections than there are files for: half of them, because a call may need a connection to a server."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return welcome
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return welcome
    return replace(welcome, connections=min(welcome.connections, max(1, (most - _OWN_FILES) // 2)))


def _bind(address: Address, *, is_shared: bool = False, is_heard: bool = True) -> socket.socket:
    if is_shared and not hasattr(socket, "SO_REUSEPORT"):
        raise Unavailable("several workers cannot share a port on this system", hint="leave --workers out")
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if is_shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        told = f"cannot listen on {address.host}, port {address.port}: {error.strerror}"
        raise Unavailable(told, hint="choose another with --port") from None
    if is_heard:
        bound.listen(_BACKLOG)
    return bound
