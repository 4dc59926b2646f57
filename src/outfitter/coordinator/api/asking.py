"""One request as a handler meets it: whose it is, what it names, its query and its body, each checked.

A body that cannot be read as one JSON object is 400, one that is read and wrong is 422. The reader is the one of files:
keys given twice, numbers that are none and depths that no document has are refused, with the line.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec

from outfitter.coordinator.api.problems import Turned
from outfitter.coordinator.values import Author
from outfitter.errors import InvalidDocument
from outfitter.formats import Syntax, parse_text

if TYPE_CHECKING:
    from outfitter.coordinator.access.identity import Identity

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Q = TypeVar("Q", bound=msgspec.Struct)
M = TypeVar("M", bound=msgspec.Struct)
JSON = "application/json"
BODY = "the request"
_MOST_PARAMETERS = 20
MOST_BYTES = 256 * 1024
"""How long a body may be. Less than a file: it is read while others wait."""
_MOST_READ = 64 * MOST_BYTES
_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[\]]+)")
_PLACE = re.compile(r"^(?P<what>.*?) - at `\$(?P<path>.*)`$", re.DOTALL)


class Asked(msgspec.Struct, Generic[Q], frozen=True, gc=False):
    """A request that may be answered."""

    method: str
    id: str
    """What the path names; empty where it names nothing."""
    query: Q
    headers: Mapping[bytes, bytes]
    who: Identity | None
    prefix: str
    """What stands before the path: ``/api/v1`` or nothing."""
    agent: str | None = None
    """The agent that a list is about: the one asked for, or the only one that the token may see."""
    body: bytes = b""
    second: str = ""
    """What else the path names; empty where it names one thing."""

    def __repr__(self) -> str:
        """Nothing of what was sent: it may hold a token or a credential."""
        return f"Asked({self.method})"

    @property
    def author(self) -> Author:
        """Who asks, as it stands in the history."""
        return Author("", is_admin=False) if self.who is None else Author(self.who.name, self.who.role == "admin")

    def document(self) -> dict[str, Any]:
        """The body as an object; Turned when it is none."""
        try:
            return parse_text(self.body, source=BODY, syntax=Syntax.JSON)
        except InvalidDocument as error:
            raise unreadable(error) from None

    def read(self, model: type[M]) -> M:
        """The body as a value; InvalidDocument says where it does not fit."""
        try:
            return msgspec.convert(self.document(), model)
        except msgspec.ValidationError as error:
            raise misfit(str(error)) from None

    def decode(self, model: type[M]) -> M:
        """The body of a program that sends much: read at once into a value, without the lines of its faults."""
        try:
            return msgspec.json.decode(self.body, type=model)
        except msgspec.ValidationError as error:
            raise misfit(str(error)) from None
        except (msgspec.DecodeError, RecursionError):
            raise Turned(400, "malformed_body", "the body is not one JSON object") from None

    @property
    def version(self) -> str | None:
        """The entity tag that the client has seen; None when it names none."""
        given = self.headers.get(b"if-match")
        return None if given is None else given.decode("latin-1").strip()


def unreadable(error: InvalidDocument) -> Turned:
    """The answer to a body that is not one JSON object."""
    turned = Turned(400, "malformed_body", error.message, hint=error.hint)
    turned.problem = msgspec.structs.replace(turned.problem, line=error.line, pointer=error.path)
    return turned


def misfit(told: str) -> InvalidDocument:
    """What msgspec says about a value, with the place as a trail of keys."""
    found = _PLACE.match(told)
    what, path = (found["what"], found["path"]) if found else (told, "")
    steps = [int(index) if index else key for index, key in _STEP.findall(path)]
    return InvalidDocument(what[:1].lower() + what[1:], source="").under(*steps)


def read_query(text: bytes, model: type[Q]) -> Q:
    """The query as a value; Turned when a parameter is unknown, given twice or wrong."""
    if not text:
        return model()
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS
        )
        given = dict(pairs)
        if len(given) != len(pairs):
            raise Turned(400, "bad_query", "a parameter is given twice")
        return msgspec.convert(given, model, strict=False)
    except msgspec.ValidationError as error:
        names = ", ".join(model.__struct_encode_fields__)
        hint = f"known: {names}" if names else "this path takes no parameters"
        raise Turned(400, "bad_query", misfit(str(error)).message, hint=hint) from None
    except ValueError:
        raise Turned(400, "bad_query", "the query is not readable") from None


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, most: int = MOST_BYTES) -> bytes:
    """The whole body of a request that must have one, which may be so long."""
    kind, _, parameters = headers.get(b"content-type", b"").decode("latin-1").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if kind.strip().lower() != JSON or charset not in {"", "charset=utf-8"}:
        raise Turned(415, "unsupported_media_type", f"the body must be {JSON}", headers=[("accept", JSON)])
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Turned(415, "unsupported_media_type", "the body must not be compressed")
    return await _receive(receive, most)


async def refuse_body(receive: Receive) -> None:
    """Read on where nothing may come; an empty object is nothing."""
    if (await _receive(receive)).strip() not in {b"", b"{}"}:
        raise Turned(400, "malformed_body", "this request takes no body")


async def _receive(receive: Receive, most: int = MOST_BYTES) -> bytes:
    """The body. One that is too long is read a while longer: who still sends does not hear an answer."""
    body = bytearray()
    size = 0
    is_whole = False
    while not is_whole and size <= _MOST_READ:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Turned(400, "malformed_body", "the client went away")
        piece = event.get("body", b"")
        size += len(piece)
        if size <= most:
            body += piece
        is_whole = not event.get("more_body")
    if size > most:
        told = f"the body is longer than {most // 1024} KiB"
        raise Turned(413, "too_large", told, headers=[("connection", "close")])
    return bytes(body)
