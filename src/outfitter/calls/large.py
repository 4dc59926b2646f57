"""A result that is too large for a model: what of it is shown, and how the rest is read. Pure.

The gateway and the library do the same with it; where it is kept meanwhile is theirs. Places are counted in bytes of
UTF-8, and no character is ever cut in two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

SCHEME = "outfitter://results/"
READER = "read_kept_result"
_CONTINUED, _FIRST = 0xC0, 0x80
_MOST_SHOWN, _LEAST_SHOWN = 6_000, 200
_HEAD = 2 / 3
_MOST_MATCHES = 20
_AROUND = 120
_WIDEST = 4
"""How many bytes a character has at most: whoever reads on comes forward."""
Encode: TypeAlias = Callable[[object], bytes]
READER_TOOL: Mapping[str, Any] = {
    "name": READER,
    "title": "Read a kept result",
    "description": (
        "Read more of a result that was too large to be shown whole and was kept under a handle. Without find it gives "
        "the part from offset on; with find it says where that text stands, so that you can read around it."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "As the shortened result names it: outfitter://results/..."},
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Where to begin, in bytes"},
            "length": {"type": "integer", "minimum": 1, "description": "How many bytes at most"},
            "find": {"type": "string", "minLength": 1, "description": "A text to look for from offset on"},
        },
        "required": ["handle"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
"""The tool with which a model reads what was kept."""


@dataclass(frozen=True, slots=True)
class Large:
    """The text of a large result, and the blocks of it that are no text."""

    text: bytes = field(repr=False)
    is_json: bool
    others: tuple[Any, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text: from where to where, of how many bytes."""

    text: str
    start: int
    end: int
    total: int


def find_large(answer: Mapping[str, Any], limit: int, encode: Encode) -> Large | None:
    """The text of an answer whose text or structured content is more than so many bytes; None when neither is.

    Images, sounds and links are no text: they are not counted, and stay in the answer.
    """
    blocks = answer.get("content")
    texts = [(block, _text_of(block)) for block in cast("list[object]", blocks)] if isinstance(blocks, list) else []
    joined = "\n".join(text for _, text in texts if text is not None).encode("utf-8", "replace")
    structured = answer.get("structuredContent")
    written = b"" if structured is None else encode(structured)
    if max(len(joined), len(written)) <= limit:
        return None
    others = tuple(block for block, text in texts if text is None)
    if not written or _says(joined, structured):
        return Large(joined, bool(written), others)
    return Large(b"\n\n".join(part for part in (joined, written) if part), not joined, others)


def _text_of(block: object) -> str | None:
    """The text of a block; None when it is something else."""
    fields = _fields(block)
    text = (_fields(fields.get("resource")) if fields.get("type") == "resource" else fields).get("text")
    return text if isinstance(text, str) else None


def _fields(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _says(text: bytes, structured: object) -> bool:
    """Whether a text is the structured content, written down: most servers send both."""
    try:
        return json.loads(text) == structured
    except (ValueError, RecursionError):
        return False


def preview(text: bytes, handle: str, limit: int, reader: str = READER) -> str:
    """What the model gets instead: how long it is, its beginning and its end, and how to read the rest."""
    shown = max(_LEAST_SHOWN, min(limit // 2, _MOST_SHOWN))
    head = cut(text, 0, int(shown * _HEAD))
    tail = cut(text, max(head.end, len(text) - (shown - head.end)), shown)
    return (
        f"[The result is {len(text)} bytes long and was kept as {handle}. Its first {head.end} and last "
        f"{tail.end - tail.start} bytes follow. Read more with the tool '{reader}': offset and length in bytes, or "
        f"find for a text in it.]\n{head.text}\n[... {tail.start - head.end} bytes left out ...]\n{tail.text}"
    )


def cut(text: bytes, start: int, length: int) -> Piece:
    """A part of the text; its ends are moved inwards where they would cut a character in two."""
    first, last = min(max(start, 0), len(text)), min(max(start, 0) + max(length, 0), len(text))
    while first < last and text[first] & _CONTINUED == _FIRST:
        first += 1
    if last < len(text):
        while last > first and text[last] & _CONTINUED == _FIRST:
            last -= 1
    return Piece(text[first:last].decode("utf-8", "replace"), first, last, len(text))


def read_part(text: bytes, offset: int, length: int) -> str:
    """A part of a kept text, with where it stands and where the next one begins."""
    piece = cut(text, offset, max(length, _WIDEST))
    if piece.start >= piece.total:
        return f"[offset {offset} is behind the end: there are {piece.total} bytes]"
    more = f"; the next part begins at offset {piece.end}" if piece.end < piece.total else "; this is the end"
    return f"[bytes {piece.start} to {piece.end} of {piece.total}{more}]\n{piece.text}"


def find_parts(text: bytes, wanted: str, offset: int, length: int) -> str:
    """Where a text stands in a kept one from an offset on, with what is around; letters of ASCII in either case."""
    haystack, needle = text.lower(), wanted.encode("utf-8", "replace").lower()
    found: list[str] = []
    size, place = 0, haystack.find(needle, max(offset, 0)) if needle else -1
    while place >= 0 and len(found) < _MOST_MATCHES:
        around = cut(text, max(place - _AROUND, 0), len(needle) + min(place, _AROUND) + _AROUND)
        line = f"offset {place}: ...{around.text}..."
        size += len(line)
        if found and size > length:
            break
        found.append(line)
        place = haystack.find(needle, place + len(needle))
    if not found:
        return f"[{json.dumps(wanted, ensure_ascii=False)} does not stand in it from offset {offset} on]"
    more = f"; more from offset {place}" if place >= 0 else "; there are no more"
    count = "1 match" if len(found) == 1 else f"{len(found)} matches"
    return "\n".join((f"[{count}{more}]", *found))
