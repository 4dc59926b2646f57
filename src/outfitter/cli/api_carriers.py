"""Who carries a command's request: HTTP to a service, or a call of the application in this process.

HTTP follows no redirect and checks certificates: a token goes to the host that was named and to no other. The
application in this process is called as a server would call it, so both answer alike.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Generator, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import SplitResult, urlsplit

from outfitter.cli.api_client import Asking, Opened
from outfitter.errors import Forbidden, Invalid, Unavailable

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from outfitter.app import App

_SECONDS = 60.0
_PIECE = 64 * 1024
Message: TypeAlias = MutableMapping[str, Any]
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class HttpCarrier:
    """Carries requests to a service."""

    url: SplitResult
    seconds: float = _SECONDS

    @classmethod
    def to(cls, url: str, *, is_plain_allowed: bool = False) -> HttpCarrier:
        """The carrier to a service; Invalid for what is no address, Forbidden where a token would travel in clear."""
        try:
            parts = urlsplit(url)
            is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            raise Invalid("--server is no address", hint="such as https://outfitter.example.com") from None
        if not is_whole or parts.query or parts.fragment:
            raise Invalid("--server is no address", hint="such as https://outfitter.example.com")
        if "@" in parts.netloc:
            raise Invalid("--server holds a name or a password", hint="put the token into OUTFITTER_TOKEN")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not is_plain_allowed:
            hint = "use https, or say --plain-http if the network between is yours"
            raise Forbidden(f"tokens and documents would go to {parts.hostname!a} in clear", hint=hint)
        return cls(parts)

    @contextmanager
    def open(self, asking: Asking) -> Generator[Opened]:
        """The answer of the service, as long as the block lasts."""
        connection = self._connect()
        try:
            with self._told():
                path = self.url.path.rstrip("/") + asking.target
                connection.request(asking.method, path, asking.body or None, dict(asking.headers))
                response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            yield Opened(response.status, headers, self._pieces(response))
        finally:
            connection.close()

    def _pieces(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        with self._told():
            while piece := response.read1(_PIECE):
                yield piece

    def _connect(self) -> http.client.HTTPConnection:
        host = self.url.hostname or ""
        if self.url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, self.url.port, timeout=self.seconds, context=context)
        return http.client.HTTPConnection(host, self.url.port, timeout=self.seconds)

    @contextmanager
    def _told(self) -> Generator[None]:
        """What goes wrong on the way, as an error of ours. The address has no secret in it."""
        place = self.url.geturl()
        try:
            yield
        except ssl.SSLCertVerificationError as error:
            hint = "name the file of your authority in SSL_CERT_FILE"
            raise Unavailable(
                f"its certificate is not trusted: {error.verify_message}", where=place, hint=hint
            ) from None
        except OSError as error:
            hint = "is the service running, and is --server right?"
            why = error.strerror or str(error) or type(error).__name__
            raise Unavailable(f"the service cannot be reached: {why}", where=place, hint=hint) from None
        except http.client.HTTPException as error:
            raise Unavailable(f"what answers there is not HTTP: {type(error).__name__}", where=place) from None


@dataclass(frozen=True, slots=True)
class InnerCarrier:
    """Carries requests to an application of this process, which runs on the loop of the portal."""

    portal: BlockingPortal = field(repr=False)
    app: App = field(repr=False)

    @contextmanager
    def open(self, asking: Asking) -> Generator[Opened]:
        """The answer of the application, as long as the block lasts."""
        exchange = self.portal.call(_begin, asking)
        work = self.portal.start_task_soon(exchange.run, self.app)
        try:
            start = self.portal.call(exchange.next)
            if start is None:
                raise Unavailable("the registry of this machine gave no answer")
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
            yield Opened(start["status"], headers, self._pieces(exchange))
        finally:
            work.cancel()
            self.portal.call(exchange.read.close)

    def _pieces(self, exchange: _Exchange) -> Iterator[bytes]:
        while (message := self.portal.call(exchange.next)) is not None:
            yield message.get("body", b"")
            if not message.get("more_body"):
                return


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One request to an application, as ASGI has it."""

    asking: Asking
    write: MemoryObjectSendStream[Message]
    read: MemoryObjectReceiveStream[Message]
    sent: list[bytes] = field(default_factory=list[bytes])

    async def run(self, app: App) -> None:
        async with self.write:
            await app(_scope(self.asking), self._receive, self.write.send)

    async def next(self) -> Message | None:
        """What the application says next; None when it says no more."""
        from anyio import EndOfStream

        try:
            return await self.read.receive()
        except EndOfStream:
            return None

    async def _receive(self) -> Message:
        from anyio import sleep_forever

        if self.sent:
            await sleep_forever()  # a client that stays until the command ends
        self.sent.append(self.asking.body)
        return {"type": "http.request", "body": self.asking.body, "more_body": False}


def _begin(asking: Asking) -> _Exchange:
    from anyio import create_memory_object_stream

    return _Exchange(asking, *create_memory_object_stream[Message](1))


def _scope(asking: Asking) -> Message:
    path, _, query = asking.target.partition("?")
    headers = {"host": "localhost", **asking.headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": asking.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
    }
