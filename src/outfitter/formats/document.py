"""One document from text to value, with every fault put in its place: file, line, pointer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from outfitter.errors import OutfitterError
from outfitter.formats.positions import shown_pointer
from outfitter.formats.text import Syntax, line_of, parse_text

T = TypeVar("T")


def read_document(data: bytes | str, source: str, syntax: Syntax, read: Callable[[object], T]) -> T:
    """The value that the reader makes of the text; whatever it raises says where in the text it was."""
    value = parse_text(data, source=source, syntax=syntax)
    try:
        return read(value)
    except OutfitterError as error:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        error.locate(source, line_of(text, error.trail, syntax), shown_pointer(error.trail))
        raise
