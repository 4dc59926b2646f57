"""Who comes in over HTTP: host, origin, size, form and token are judged before anything is read as MCP.

Every refusal is the same for everyone: it tells nothing about which agents, servers or tools there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from outfitter.gateway.tokens import TokenRecord, TokenSource
from outfitter.gateway.trace import arrived_with
from outfitter.gateway.visitors import Principal

MAX_BODY = 4 * 1024 * 1024
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_MOST_HEADERS = 100
_LONGEST_HEADER = 16 * 1024
_PARTS = 2
_REFUSED = 400
ADMIN = "*"
"""The agent of a token that opens no endpoint, only the private pages."""
RefuseCall = Callable[[Principal, str], tuple[int, float] | None]
"""Status and seconds to wait for a call that is one too many."""


class Turned(Exception):
    """A request that is answered by a bare HTTP status."""

    def __init__(self, status: int, text: str, *headers: tuple[str, str]) -> None:
        """Say the status and why."""
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request as it came: lower-case header names, one endpoint."""

    method: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    agent: str
    server: str | None

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return next((value for key, value in self.headers if key == name), None)

    def accepts(self, kind: str) -> bool:
        """Whether the client takes answers of this type."""
        accepted = self.header("accept")
        if accepted is None:
            return False
        kinds = [part.partition(";")[0].strip().lower() for part in accepted.split(",")]
        return kind in kinds or "*/*" in kinds or f"{kind.partition('/')[0]}/*" in kinds


@dataclass(frozen=True, slots=True)
class Page:
    """Something small that the gate answers itself: an HTTP status and a text."""

    show: Callable[[], tuple[int, str]]
    is_private: bool = False
    """Shown to those with an admin token only."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules at the door. ``tokens`` None lets everyone in, which is for loopback only."""

    tokens: TokenSource | None
    hosts: tuple[str, ...] = ()
    """Names under which the gateway may be called besides loopback, with or without port."""
    origins: tuple[str, ...] = ()
    pages: Mapping[str, Page] = field(default_factory=dict[str, "Page"])
    """What is answered at the gate itself, by path."""
    refuse_call: RefuseCall | None = None
    on_turned: Callable[[int], None] | None = None

    def arrive(self, method: str, path: str, headers: Sequence[tuple[str, str]]) -> Arrival:
        """The request, if it may go on; Turned otherwise."""
        try:
            arrival = self._arrive(method, path, headers)
        except Turned as turned:
            self._count(turned)
            raise
        arrived_with.set((arrival.header("traceparent"), arrival.header("tracestate")))
        return arrival

    def admit(self, arrival: Arrival) -> Principal:
        """Whom the token stands for; Turned when there is none, when it is another agent's, or for a call too many."""
        try:
            principal = self.recognise(arrival)
            if self.refuse_call is not None and arrival.method == "POST":
                self._hold_back(arrival, principal)
        except Turned as turned:
            self._count(turned)
            raise
        return principal

    def _count(self, turned: Turned) -> None:
        if self.on_turned is not None and turned.status >= _REFUSED:
            self.on_turned(turned.status)

    def _hold_back(self, arrival: Arrival, principal: Principal) -> None:
        """A call of the modern era says so in a header; a call of the handshake era is held back by the pipeline."""
        if self.refuse_call is None or arrival.header("mcp-method") != "tools/call":
            return
        refused = self.refuse_call(principal, arrival.header("mcp-name") or "")
        if refused is not None:
            status, wait = refused
            raise Turned(status, "too many calls; try again later", ("retry-after", str(math.ceil(wait))))

    def _show(self, path: str, headers: Mapping[str, str]) -> None:
        page = self.pages[path]
        if page.is_private and not self._is_admin(headers.get("authorization")):
            raise Turned(401, "an admin token is needed", ("www-authenticate", 'Bearer realm="outfitter"'))
        status, text = page.show()
        raise Turned(status, text)

    def _is_admin(self, authorization: str | None) -> bool:
        record = self._record(authorization)
        return record is not None and record.agent == ADMIN

    def _record(self, authorization: str | None) -> TokenRecord | None:
        scheme, _, token = (authorization or "").partition(" ")
        if self.tokens is None or scheme.lower() != "bearer":
            return None
        return self.tokens.find(token.strip())

    def _arrive(self, method: str, path: str, headers: Sequence[tuple[str, str]]) -> Arrival:
        if len(headers) > _MOST_HEADERS or sum(len(name) + len(value) for name, value in headers) > _LONGEST_HEADER:
            raise Turned(431, "too many or too long headers")
        headers = [(name, value.strip(" \t")) for name, value in headers]
        given = dict(reversed(headers))
        self._check_host(given.get("host"))
        self._check_origin(given.get("origin"))
        if path in self.pages and method == "GET":
            self._show(path, given)
        parts = [unquote(part) for part in path.removeprefix("/mcp/").split("/")]
        if not path.startswith("/mcp/") or not parts[0] or len(parts) > _PARTS:
            raise Turned(404, "not found")
        server = parts[1] if len(parts) == _PARTS and parts[1] else None
        return Arrival(method, tuple(headers), parts[0], server)

    def recognise(self, arrival: Arrival) -> Principal:
        """Whom the token stands for; Turned otherwise. Nothing is counted, so it may be asked before ``admit``."""
        if self.tokens is None:
            return Principal(arrival.agent, "open", arrival.server)
        record = self._record(arrival.header("authorization"))
        if record is None:
            raise Turned(401, "a token is needed", ("www-authenticate", 'Bearer realm="outfitter"'))
        if record.agent != arrival.agent or (record.server is not None and record.server != arrival.server):
            raise Turned(403, "this token is not for this endpoint")
        return record.principal

    def _check_host(self, host: str | None) -> None:
        if host is None:
            raise Turned(400, "a Host header is needed")
        if not is_served(host, self.hosts):
            raise Turned(421, "this host is not served here")

    def _check_origin(self, origin: str | None) -> None:
        if origin is not None and not is_welcome(origin, self.hosts, self.origins):
            raise Turned(403, "this origin may not call here")


def is_served(host: str, hosts: Collection[str]) -> bool:
    """Whether a ``Host`` is loopback or one of these, which are written with or without a port."""
    asked, served = host.lower(), {known.lower() for known in hosts}
    name = asked if asked.endswith("]") else asked.rsplit(":", 1)[0]
    return name in _LOOPBACK or name in served or asked in served


def is_welcome(origin: str, hosts: Collection[str], origins: Collection[str]) -> bool:
    """Whether pages of an ``Origin`` may call: it is allowed by name, or its host is served."""
    if origin in origins:
        return True
    try:
        name = urlsplit(origin).hostname or ""
    except ValueError:
        return False
    return is_served(f"[{name}]" if ":" in name else name, hosts)
