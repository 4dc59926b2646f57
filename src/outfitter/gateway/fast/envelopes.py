"""What must be known of a message to pass it on: the envelope, and the members of a result one level deep. Pure.

Whatever is not exactly as expected is None: the full lane reads it again and says what is wrong with it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import msgspec
from msgspec import Raw

from outfitter.gateway import modern
from outfitter.gateway.asked import OUTCOME
from outfitter.upstream import Era, Message

_NOTHING = Raw(b"")
_LARGE = 16 * 1024
_MODERN_KEYS = ("resultType", "ttlMs", "cacheScope")
_ID_BEGINS = b'-0123456789"'
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_ANSWER = b'{"jsonrpc":"2.0","id":%b,"result":%b}'
_AROUND = len(_ANSWER % (b"", b""))
_OUTCOME = OUTCOME.encode()
_COMPLETE = (b"", b'"complete"')
_TYPED = b'{"resultType":"complete",'
_SIGNED = b',"_meta":' + _encode({f"{modern.META}serverInfo": modern.SERVER_INFO}) + b"}"
_decode_meta = msgspec.json.Decoder(dict[str, Any]).decode


class Params(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The parameters of a plain call; one that carries anything else is not plain."""

    name: str
    arguments: Raw = _NOTHING
    meta: Raw = msgspec.field(default=_NOTHING, name="_meta")


class Envelope(msgspec.Struct, gc=False):
    """A ``tools/call``."""

    jsonrpc: Literal["2.0"]
    id: Raw
    method: Literal["tools/call"]
    params: Params


class Answer(msgspec.Struct, gc=False):
    """A response that brings a result."""

    id: int
    result: Raw
    error: Raw = _NOTHING
    method: Raw = _NOTHING


class _Members(msgspec.Struct, gc=False, rename="camel"):
    """The members of a result that are looked at; the others are passed over."""

    result_type: Raw = _NOTHING
    is_error: Raw = _NOTHING
    ttl_ms: Raw = _NOTHING
    cache_scope: Raw = _NOTHING
    meta: Raw = msgspec.field(default=_NOTHING, name="_meta")


class Result(NamedTuple):
    """A result as JSON, and what must be known of it to pass it on."""

    raw: bytes
    has_failed: bool
    """Whether the tool itself says that it failed."""
    is_question: bool
    """Whether the server wants to know something before it answers."""
    is_typed: bool
    is_modern: bool
    """Whether it has members that the handshake era does not know."""
    has_meta: bool


_read_envelope = msgspec.json.Decoder(Envelope).decode
_read_answer = msgspec.json.Decoder(Answer).decode
_read_members = msgspec.json.Decoder(_Members).decode


def read_call(body: bytes) -> tuple[Envelope, Message] | None:
    """The envelope of a plain call and its arguments, read; None for anything else."""
    try:
        envelope = _read_envelope(body)
        raw = bytes(envelope.params.arguments)
        arguments: Any = _decode(raw) if raw else {}
        if not body.isascii():
            body.decode()
    except (ValueError, RecursionError):
        return None
    if bytes(envelope.id)[0] not in _ID_BEGINS or not isinstance(arguments, dict):
        return None
    return envelope, cast("Message", arguments)


def read_answer(body: bytes, request_id: int) -> Result | None:
    """The result in a server's answer to this request; None for anything but a plain result."""
    try:
        answer = _read_answer(body)
        if len(body) <= _LARGE:
            _decode(body)  # numbers that nobody can hold, bytes that are no text: a member that is not read hides them
        elif not body.isascii():
            body.decode()
        if answer.id != request_id or bytes(answer.error) or bytes(answer.method):
            return None
        return None if _OUTCOME in body else read_result(bytes(answer.result))
    except (ValueError, RecursionError):
        return None


def read_result(raw: bytes) -> Result:
    """A result as JSON, read; ValueError when it is not an object."""
    known = _read_members(raw)
    kind = bytes(known.result_type)
    is_modern = bool(kind or bytes(known.ttl_ms) or bytes(known.cache_scope))
    is_failed = bytes(known.is_error) == b"true"
    return Result(raw, is_failed, kind not in _COMPLETE, bool(kind), is_modern, bool(bytes(known.meta)))


def write_answer(ident: Raw, era: Era, result: Result) -> bytes | None:
    """The response as a client of this era gets it; None when the server's ``_meta`` is not an object."""
    raw = result.raw
    if era is Era.LEGACY:
        if result.is_modern:
            members = _decode_members(raw)
            raw = _encode({key: value for key, value in members.items() if key not in _MODERN_KEYS})
    elif result.has_meta or raw[1:2] != b'"':  # a result that may be empty cannot be added to
        members: dict[str, Any] = {**_decode_members(raw)}
        if "_meta" in members:
            try:
                members["_meta"] = _decode_meta(members["_meta"])
            except ValueError:
                return None
        raw = _encode(modern.dress("tools/call", members))
    else:
        raw = b"%b%b%b" % (b"{" if result.is_typed else _TYPED, raw[1:-1], _SIGNED)
    return _ANSWER % (bytes(ident), raw)


def size_of_result(ident: Raw, body: bytes) -> int:
    """How long the result in a written response is."""
    return len(body) - len(bytes(ident)) - _AROUND
