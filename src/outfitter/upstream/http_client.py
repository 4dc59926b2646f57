"""How one HTTP request is sent and what its failure means, in Outfitter's words.

``HttpClient`` is opened once per process and loop, and holds the connections that all wires share. It judges where a
request goes (``guard``), reveals the armed headers for the moment of sending, follows no redirect to another place,
keeps no cookie, and reads no more than its limits. What the messages say is for ``http`` and ``sse``.
"""

from __future__ import annotations

import io
import re
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urljoin, urlsplit

import msgspec

from outfitter.basics import MASK, Secret
from outfitter.catalog import NoAuth
from outfitter.errors import DestinationForbidden, Invalid, NeedsAuth, OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.resolution import ArmedRemote, ArmedServer
from outfitter.upstream.authorizer import Authorizer
from outfitter.upstream.events import DEFAULT_EVENT_LIMIT
from outfitter.upstream.guard import Guard, Lookup, look_up
from outfitter.upstream.http_faults import failure_of
from outfitter.upstream.wire import Message, SessionLost

if TYPE_CHECKING:
    import aiohttp

JSON_TYPE = "application/json"
STREAM_TYPE = "text/event-stream"
_POST_HEADERS = {"Accept": f"{JSON_TYPE}, {STREAM_TYPE}", "Content-Type": JSON_TYPE}
_OTHER_HEADERS = {"Accept": STREAM_TYPE}
_LARGE_BODY = 1024 * 1024
_ERROR_PAGE = 64 * 1024
_QUOTED = 200
_SHORTEST_SECRET, _LONG_PART = 4, 12
_REMEMBERED_GRANTS = 4
_NOTHING: Mapping[str, Secret] = {}
_PER_HOST = 256
# Common servers close an idle connection after five seconds. Being first avoids a request that meets a closing door.
_KEEP_ALIVE = 4.0
_OK, _REDIRECT, _BAD = 200, 300, 400
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_MANY, _SERVER_FAULT = 401, 403, 404, 429, 500
_SESSION_CODES = frozenset({-32000, -32001, -32600})


class StatusRefused(ProtocolViolation):
    """The server answered with an HTTP status and no MCP message."""

    def __init__(self, message: str, *, status: int, where: str = "", hint: str = "") -> None:
        """Keep the status for whoever finds out which protocol the server speaks."""
        super().__init__(message, where=where, hint=hint)
        self.status = status


class AuthWanted(NeedsAuth):
    """The server answered 401 or 403; ``challenge`` is what it said about the credentials it wants."""

    def __init__(self, message: str, *, status: int, challenge: str, where: str = "") -> None:
        """Keep the challenge apart, for whoever can get other credentials."""
        super().__init__(message, where=where)
        self.status = status
        self.challenge = challenge


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """How much and how long: seconds to connect (a server may say less), bytes of one JSON answer and of one event."""

    connect: float = 30.0
    body: int = 16 * 1024 * 1024
    event: int = DEFAULT_EVENT_LIMIT


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A judged URL, the armed headers that go with every request to it, and the seconds a connection may take.

    An authorizer, if there is one, adds its headers to each request; ``hushed`` keeps what must not be quoted besides.
    """

    url: Secret
    headers: Mapping[str, Secret] = field(repr=False)
    where: str
    connect: float
    authorizer: Authorizer | None = field(default=None, repr=False)
    hushed: deque[Secret] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_GRANTS), repr=False, compare=False)

    def sibling(self, reference: str) -> Endpoint:
        """The same server at another URL of the same origin; DestinationForbidden when it is another origin's."""
        here = self.url.reveal()
        try:
            there = urljoin(here, reference)
            is_same = _origin(there) == _origin(here)
        except ValueError:
            there, is_same = reference, False
        if not is_same:
            raise DestinationForbidden(f"the server sends its client to another origin: {self.quote(there)}")
        return replace(self, url=Secret(there))

    def dress(self, method: str, extra: Mapping[str, str], granted: Mapping[str, Secret] = _NOTHING) -> dict[str, str]:
        """Every header of one request; what is granted wins, and what the request itself says, however spelled."""
        spoken = {name.lower() for name in (*extra, *granted)}
        dressed = dict(_POST_HEADERS if method == "POST" else _OTHER_HEADERS)
        dressed |= {name: value.reveal() for name, value in self.headers.items() if name.lower() not in spoken}
        dressed |= {name: value.reveal() for name, value in granted.items()}
        dressed |= extra
        return dressed

    def plain(self, extra: Mapping[str, str]) -> tuple[str, dict[str, str]] | None:
        """The URL and every header of a POST, for who writes it to the socket; None when they change by request."""
        return None if self.authorizer is not None else (self.url.reveal(), self.dress("POST", extra))

    async def grants(self) -> Mapping[str, Secret]:
        """The headers that the authorizer adds now."""
        if self.authorizer is None:
            return _NOTHING
        granted = await self.authorizer.headers()
        self.hushed.extend(value for value in granted.values() if value not in self.hushed)
        return granted

    def _secret_words(self) -> set[str]:
        """What must not be repeated: header values, with and without their scheme, and the long parts of the URL."""
        values = [value.reveal() for value in (*self.headers.values(), *self.hushed)]
        words = {word for value in values for word in (value, value.partition(" ")[2]) if len(word) >= _SHORTEST_SECRET}
        path = self.url.reveal().split("/", 3)[-1]
        return words | {part for part in re.split("[/?&=]", path) if len(part) >= _LONG_PART}

    def quote(self, data: bytes | str) -> str:
        """The beginning of what a server said, escaped, without what it repeats of our own secrets."""
        text = data if isinstance(data, str) else data.decode("utf-8", "backslashreplace")
        for word in sorted(self._secret_words(), key=len, reverse=True):
            text = text.replace(word, MASK)
        return ascii(text[:_QUOTED]).replace(ascii(MASK)[1:-1], MASK)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


class HttpClient:
    """The connections of one process and loop, opened by the first request; whoever made it closes it."""

    def __init__(
        self,
        guard: Guard | None = None,
        limits: HttpLimits | None = None,
        *,
        lookup: Lookup = look_up,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Keep the rules; nothing is opened yet. Without ``tls`` the system's certificates are trusted."""
        self.guard = guard or Guard()
        self.limits = limits or HttpLimits()
        self._lookup = lookup
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """Itself; the first request opens the pool."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        await self.close()

    async def close(self) -> None:
        """Close every connection; what is asked afterwards fails with UpstreamLost."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        import aiohttp

        from outfitter.upstream.resolver import GuardedResolver

        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self.guard, self._lookup),
            ssl=True if self._tls is None else self._tls,
            limit=0,  # one slow server must not take the others' places; each has its own limit
            limit_per_host=_PER_HOST,
            keepalive_timeout=_KEEP_ALIVE,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "outfitter", "Accept-Encoding": "gzip, deflate"},
            trust_env=False,
        )

    def endpoint(self, server: ArmedServer, authorizer: Authorizer | None = None) -> Endpoint:
        """Where this server is, if it may be there; DestinationForbidden otherwise."""
        remote, where = server.transport, f"server '{server.planned.alias}'"
        if not isinstance(remote, ArmedRemote):
            raise TypeError(f"{where} is not reached by HTTP")
        carries_secrets = bool(remote.headers) or not isinstance(server.auth, NoAuth) or authorizer is not None
        try:
            url = self.guard.admit(remote.url.reveal(), carries_secrets=carries_secrets)
        except OutfitterError as error:
            error.where = where
            raise
        connect = min(self.limits.connect, server.planned.definition.value.limits.connect)
        return Endpoint(Secret(url), remote.headers, where, connect, authorizer)

    async def addresses(self, host: str, port: int) -> list[str]:
        """Where a name may be connected to now, each address judged."""
        return self.guard.judge(host, await self._lookup(host, port))

    @asynccontextmanager
    async def exchange(
        self, endpoint: Endpoint, method: str, headers: Mapping[str, str], body: bytes | None = None,
        sent: Awaitable[aiohttp.ClientResponse] | None = None,
    ) -> AsyncGenerator[aiohttp.ClientResponse]:  # fmt: skip
        """Send a request, unless it was, and hold its response; leaving early closes the connection at once.

        A response that was read to its end has given its connection back by then.
        """
        import aiohttp

        try:
            response = await (sent or self._send(endpoint, method, headers, body))
            try:
                yield response
            finally:
                response.close()
        except (aiohttp.ClientError, OSError) as error:
            raise failure_of(error, endpoint.connect, endpoint.where) from None
        except OutfitterError as error:
            error.where = error.where or endpoint.where
            raise

    async def _send(
        self, endpoint: Endpoint, method: str, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        """The response to a request; to the same once more when its credentials were refused and there are better."""
        granted = await endpoint.grants()
        response = await self._send_once(endpoint, method, endpoint.dress(method, headers, granted), body)
        if endpoint.authorizer is None or response.status not in {_UNAUTHORIZED, _FORBIDDEN}:
            return response
        with ExitStack() as held:
            held.callback(response.close)
            challenge = response.headers.get("WWW-Authenticate", "")
            if not await endpoint.authorizer.challenged(response.status, challenge, granted):
                held.pop_all()
                return response
        granted = await endpoint.grants()
        return await self._send_once(endpoint, method, endpoint.dress(method, headers, granted), body)

    async def _send_once(
        self, endpoint: Endpoint, method: str, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        from aiohttp import ClientTimeout

        if self._is_closed:
            raise UpstreamLost("the HTTP client is closed", where=endpoint.where)
        self._session = self._session or self._open_session()
        return await self._session.request(
            method,
            endpoint.url.reveal(),
            headers=headers,
            data=body if body is None or len(body) < _LARGE_BODY else io.BytesIO(body),
            allow_redirects=False,
            timeout=ClientTimeout(total=None, connect=endpoint.connect),
        )


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole body; ProtocolViolation as soon as it is more than the limit."""
    body = await _read_up_to(response, limit)
    if len(body) > limit:
        raise ProtocolViolation(f"the server's answer is more than {limit} bytes")
    return body


async def _read_up_to(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, or a little more than ``limit`` bytes of it."""
    pieces: list[bytes] = []
    size = 0
    while size <= limit and (piece := await response.content.readany()):
        pieces.append(piece)
        size += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def is_type(response: aiohttp.ClientResponse, media_type: str) -> bool:
    """Whether the body says it is of this type."""
    return response.headers.get("Content-Type", "").lower().startswith(media_type)


def encode_message(message: Message) -> bytes:
    """The message as JSON; Invalid when it holds what JSON cannot."""
    try:
        return msgspec.json.encode(message)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"the message cannot be written as JSON: {type(error).__name__}") from None


def decode_messages(data: bytes, endpoint: Endpoint) -> list[Message]:
    """The messages of a body or event, mostly one; ProtocolViolation quotes what is none."""
    try:
        value: Any = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        raise ProtocolViolation(f"the server sent what is not JSON: {endpoint.quote(data)}") from None
    messages = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not all(isinstance(message, dict) for message in messages):
        raise ProtocolViolation(f"the server sent JSON that is no message: {endpoint.quote(data)}")
    return cast("list[Message]", messages)


async def read_refusal(
    response: aiohttp.ClientResponse, endpoint: Endpoint, limits: HttpLimits, *, has_session: bool
) -> Message:
    """The JSON-RPC error that came with a status that is not 2xx; raises what the status means when none came."""
    status = response.status
    if _REDIRECT <= status < _BAD:
        raise _redirected(response, endpoint)
    body = await _read_up_to(response, limits.body if is_type(response, JSON_TYPE) else _ERROR_PAGE)
    if status in {_UNAUTHORIZED, _FORBIDDEN}:
        challenge = response.headers.get("WWW-Authenticate", "")
        words = f"the server answered {status}: {endpoint.quote(challenge or body)}"
        raise AuthWanted(words, status=status, challenge=_mask(challenge, endpoint))
    error = _rpc_error(body)
    if has_session and _means_session_lost(status, error):
        raise SessionLost("the server does not know the session any more")
    if error is not None:
        return error
    raise _status_error(response, endpoint, body)


def _mask(text: str, endpoint: Endpoint) -> str:
    """The text as it was, unless it repeats one of our secrets."""
    return endpoint.quote(text) if MASK in endpoint.quote(text) else text


def _rpc_error(body: bytes) -> Message | None:
    try:
        value: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    found = cast("Message", value) if isinstance(value, dict) else {}
    return found if isinstance(found.get("error"), dict) and "code" in found["error"] else None


def _means_session_lost(status: int, error: Message | None) -> bool:
    """404 by the rules; some servers in the field say 400 and mention the session."""
    if status == _NOT_FOUND or status != _BAD or error is None:
        return status == _NOT_FOUND
    return error["error"]["code"] in _SESSION_CODES and "session" in str(error["error"].get("message")).lower()


def _redirected(response: aiohttp.ClientResponse, endpoint: Endpoint) -> StatusRefused:
    target = response.headers.get("Location", "").partition("?")[0]
    words = f"the server answered {response.status}, a redirect to {endpoint.quote(target)}, which is not followed"
    return StatusRefused(words, status=response.status, hint="use that URL if it is the server you mean")


def _status_error(response: aiohttp.ClientResponse, endpoint: Endpoint, body: bytes) -> OutfitterError:
    words = f"the server answered {response.status}: {endpoint.quote(body)}"
    if response.status == _TOO_MANY:
        after = response.headers.get("Retry-After", "")
        return UpstreamLost(words, hint=f"it asks to wait {endpoint.quote(after)} s" if after else "")
    if response.status >= _SERVER_FAULT:
        return UpstreamLost(words, may_have_run=True)
    return StatusRefused(words, status=response.status)


def is_success(status: int) -> bool:
    """Whether the status is 2xx."""
    return _OK <= status < _REDIRECT
