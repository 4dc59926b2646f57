"""How commands ask the registry's API: one client, whoever carries its requests.

An answer that is a problem comes back as the error it was, with its code, so that a command ends alike here and over
there. Neighbours: ``api_carriers`` brings requests to a service or to an application in this process, ``api_problems``
turns problems back into errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from outfitter.cli.api_problems import error_of
from outfitter.errors import Unavailable

PREFIX = "/api/v1"
_MOST_BYTES = 64 * 1024 * 1024
_PAGE = 100
_BAD = 300
_LINE_ENDS = b"\n"


@dataclass(frozen=True, slots=True)
class Asking:
    """A request as it is sent; ``target`` is the path with its query."""

    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Opened:
    """An answer whose content is still to come; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    pieces: Iterable[bytes] = field(repr=False)


class Carrier(Protocol):
    """Brings a request to the API; Unavailable when there is no answer."""

    def open(self, asking: Asking) -> AbstractContextManager[Opened]:
        """The answer, as long as the block lasts."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """The content, read."""
        try:
            return json.loads(self.content)
        except ValueError:
            hint = "does --server name the registry's service?"
            raise Unavailable("the answer is not JSON", hint=hint) from None

    @property
    def text(self) -> str:
        """The content as text."""
        return self.content.decode("utf-8", "replace")

    @property
    def etag(self) -> str:
        """The version that was answered; a change names it."""
        return self.headers.get("etag", "")


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiClient:
    """Asks the API as one person. ``token`` says who; without it, whoever comes without one."""

    carrier: Carrier
    token: str | None = field(default=None, repr=False)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, object] | None = None,
        etag: str | None = None,
    ) -> Answer:
        """A good answer; the error that it was otherwise. A body of bytes goes as it is, any other as JSON."""
        with self.carrier.open(self._asking(method, path, body, query, etag)) as opened:
            content = _all_of(opened.pieces)
        if opened.status >= _BAD:
            raise error_of(opened.status, content)
        return Answer(opened.status, opened.headers, content)

    def items(
        self, path: str, query: Mapping[str, object] | None = None, *, most: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """What a list holds, page by page; ``most`` so many."""
        cursor, left = "", most
        while left is None or left > 0:
            size = _PAGE if left is None else min(left, _PAGE)
            page = self.request("GET", path, query={**(query or {}), "cursor": cursor, "limit": size}).json
            yield from page["items"]
            cursor, left = page["next_cursor"], None if left is None else left - len(page["items"])
            if not cursor:
                return

    def events(self, query: Mapping[str, object] | None = None) -> Iterator[Event]:
        """Server-sent events as they come, until the other side ends."""
        with self.carrier.open(self._asking("GET", "/events", None, query, None)) as opened:
            if opened.status >= _BAD:
                raise error_of(opened.status, _all_of(opened.pieces))
            yield from _events(opened.pieces)

    def _asking(
        self, method: str, path: str, body: object, query: Mapping[str, object] | None, etag: str | None
    ) -> Asking:
        given = {name: _word(value) for name, value in (query or {}).items() if value not in {None, ""}}
        headers = {"accept": "application/json, text/event-stream, text/plain"}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        if etag is not None:
            headers["if-match"] = etag
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if body is not None:
            headers["content-type"] = "application/json"
        return Asking(method, f"{PREFIX}{path}{f'?{urlencode(given)}' if given else ''}", headers, data)


def path_of(kind: str, name: str, *rest: str) -> str:
    """The path of an entry; whatever stands in a name stays part of it."""
    return "/".join(("", kind, quote(name, safe=""), *rest))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _all_of(pieces: Iterable[bytes]) -> bytes:
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) > _MOST_BYTES:
            raise Unavailable(f"the answer is longer than {_MOST_BYTES} bytes")
    return bytes(found)


def _events(pieces: Iterable[bytes]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in _lines(pieces):
        name, _, value = line.decode("utf-8", "replace").partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif not line:
            if "data" in fields:
                yield Event(fields.get("event", "message"), json.loads(fields["data"]))
            fields = {}


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(_LINE_ENDS)
        if len(rest) > _MOST_BYTES:
            raise Unavailable("an event is too long")
        yield from (line.rstrip(b"\r") for line in whole)
