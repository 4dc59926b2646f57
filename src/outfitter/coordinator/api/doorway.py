"""Who may knock: host, origin and headers are judged before anything is read, by the rules of the gateway's gate.

A page of another origin gets nothing: there are no CORS headers, and an ``Origin`` that is not ours is refused. What
stands in every answer is here too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from outfitter.coordinator.api.problems import Turned
from outfitter.gateway import is_served, is_welcome

_HOST = re.compile(rb"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_MOST_HEADERS = 100
_LONGEST_HEADERS = 16 * 1024
EVERY_ANSWER: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
RawHeaders = Sequence[tuple[bytes, bytes]]


class Doorway:
    """The names under which the API may be called, and the origins that may call it."""

    __slots__ = ("_hosts", "_origins")

    def __init__(self, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        """Loopback is served always; ``hosts`` are more names, with or without a port."""
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)

    def check(self, headers: RawHeaders) -> dict[bytes, bytes]:
        """The headers by name, if the request may go on; Turned otherwise. The first of several values counts."""
        given: dict[bytes, bytes] = {}
        size = hosts = 0
        for name, value in headers:
            size += len(name) + len(value)
            hosts += name == b"host"
            given.setdefault(name, value)
        if len(headers) > _MOST_HEADERS or size > _LONGEST_HEADERS:
            raise Turned(431, "headers_too_large", "too many or too long headers")
        if hosts != 1 or _HOST.fullmatch(given[b"host"]) is None:
            raise Turned(400, "bad_host", "one Host header with a name and perhaps a port is needed")
        self._check_host(given[b"host"].decode("ascii"))
        if b"origin" in given:
            self._check_origin(given[b"origin"].decode("latin-1"))
        return given

    def _check_host(self, host: str) -> None:
        if not is_served(host, self._hosts):
            raise Turned(421, "misdirected", "this host is not served here", hint="start it with --allow-host")

    def _check_origin(self, origin: str) -> None:
        if not is_welcome(origin, self._hosts, self._origins):
            raise Turned(403, "foreign_origin", "this origin may not call here", hint="allow it with --allow-origin")
