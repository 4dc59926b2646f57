"""What must be known of a message to pass it on: the envelope, and the members of a result one level deep. Pure.

Whatever is not exactly as expected is None: the full lane reads it again and says what is wrong with it.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec
from msgspec import Raw

from outfitter.gateway import modern
from outfitter.upstream import Era, Message

_NOTHING = Raw(b"")
_LARGE = 16 * 1024
_MODERN_KEYS = ("resultType", "ttlMs", "cacheScope")
_ID_BEGINS = b'-0123456789"'
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
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
    result: dict[str, Raw]
    error: Raw = _NOTHING
    method: Raw = _NOTHING


_read_envelope = msgspec.json.Decoder(Envelope).decode
_read_answer = msgspec.json.Decoder(Answer).decode


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


def read_answer(body: bytes, request_id: int) -> dict[str, Raw] | None:
    """The result in a server's answer to this request; None for anything but a plain result."""
    try:
        answer = _read_answer(body)
        if len(body) <= _LARGE:
            _decode(body)  # numbers that nobody can hold, bytes that are no text: a member that is not read hides them
        elif not body.isascii():
            body.decode()
    except (ValueError, RecursionError):
        return None
    is_plain = answer.id == request_id and not bytes(answer.error) and not bytes(answer.method)
    return answer.result if is_plain else None


def write_answer(ident: Raw, era: Era, result: dict[str, Any]) -> bytes | None:
    """The response as a client of this era gets it; None when the server's ``_meta`` is not an object."""
    if era is Era.LEGACY:
        result = {key: value for key, value in result.items() if key not in _MODERN_KEYS}
    else:
        meta = result.get("_meta")
        if isinstance(meta, Raw):
            try:
                result["_meta"] = _decode_meta(meta)
            except ValueError:
                return None
        result = modern.dress("tools/call", result)
    return _encode({"jsonrpc": "2.0", "id": ident, "result": result})


def is_error(result: dict[str, Any]) -> bool:
    """Whether the tool itself says that it failed."""
    flag = result.get("isError")
    return flag is True or (isinstance(flag, Raw) and bytes(flag) == b"true")


def is_question(result: dict[str, Any]) -> bool:
    """Whether the server wants to know something before it answers."""
    kind = result.get("resultType", "complete")
    return (bytes(kind) != b'"complete"') if isinstance(kind, Raw) else kind != "complete"
