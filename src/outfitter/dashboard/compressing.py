"""Answers made smaller on their way: which of them, and how no secret can be learned from how small they become.

Whoever can put text of theirs into a page and see its length could guess, letter by letter, what else stands in it
(BREACH). So only what a GET shows is compressed, never the answer to a form, which may hold a new token; the key in
forms is under another mask in every answer (``sign_ins``); and each answer gets a name of random length in its head.
"""

from __future__ import annotations

import secrets
import struct
import zlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_LEAST = 1024
_LEVEL, _LEVEL_ONCE = 5, 9
_RANDOM = 100
_HEAD = b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xff"  # gzip with a name, of no time and no system
_TEXT = ("text/", "application/json", "image/svg")


def compress(request: Request, answer: Response) -> None:
    """Make an answer smaller where that is safe and the browser wants it."""
    kind = answer.headers.get("content-type", "")
    if request.method != "GET" or not kind.startswith(_TEXT) or len(answer.body) < _LEAST:
        return
    answer.headers["vary"] = "accept-encoding, x-part"
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return
    answer.body = zipped(bytes(answer.body), name=b"x" * secrets.randbelow(_RANDOM))
    answer.headers["content-length"] = str(len(answer.body))
    answer.headers["content-encoding"] = "gzip"


@cache
def zipped_once(content: bytes) -> bytes:
    """A file that everybody gets, as small as it becomes."""
    return zipped(content, level=_LEVEL_ONCE)


def zipped(content: bytes, *, name: bytes = b"", level: int = _LEVEL) -> bytes:
    """The content as gzip, with a name in its head."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(content) + packer.flush()
    return _HEAD + name + b"\0" + packed + struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF)
