"""How much a run may say, and in which characters: foreign text is cut and made harmless before it is kept.

A program's output may be ten megabytes, no UTF-8 at all, or full of escape sequences that a terminal obeys. Pure; used
by ``outbox`` for events and by the executors for results and errors.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from outfitter.basics import MASK

MOST_EVENT, MOST_RESULT, MOST_ERROR = 60 * 1024, 1024 * 1024, 2048
"""Bytes of an event's data, bytes of a result, characters of an error's text."""
_MOST_TEXT, _DEEPEST = 16 * 1024, 40
_TYPE = re.compile(r"[\x21-\x7e]{1,64}", re.ASCII)
# Everything a terminal obeys or a database refuses: controls except newline and tab, turned writing, lone surrogates.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


def harmless(text: str) -> str:
    """The text with everything a terminal would obey written out."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


def cut(text: str, most: int) -> str:
    """The text, or its beginning with the number of characters that are missing."""
    return text if len(text) <= most else f"{text[:most]}… [{len(text) - most} more characters]"


def last_words(data: bytes, hidden: Iterable[str], most: int = MOST_ERROR) -> str:
    """The end of what a program said, with hidden texts masked; give the longest of those first."""
    return harmless(hide(data.decode("utf-8", "backslashreplace"), hidden).strip()[-most:])


def hide(text: str, hidden: Iterable[str]) -> str:
    """The text with each hidden one masked."""
    for secret in hidden:
        text = text.replace(secret, MASK)
    return text


def hide_within(value: T, hidden: Sequence[str]) -> T:
    """A decoded value with each hidden text masked in every text of it; names that are such a text too."""
    return cast("T", _hidden_within(value, hidden, _DEEPEST)) if hidden else value


def _hidden_within(value: object, hidden: Sequence[str], left: int) -> object:
    if isinstance(value, str):
        return hide(value, hidden)
    if not left:
        return "…"
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return {hide(name, hidden): _hidden_within(one, hidden, left - 1) for name, one in pairs}
    if isinstance(value, list):
        return [_hidden_within(one, hidden, left - 1) for one in cast("list[object]", value)]
    return value


def event_type(value: object) -> str | None:
    """The type of an event, if this can be one."""
    return value if isinstance(value, str) and _TYPE.fullmatch(value) else None


def event_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of an event as it is kept: long texts are cut, and all of it when it is still too long."""
    found = cast("dict[str, Any]", _made_harmless(dict(data), _MOST_TEXT, _DEEPEST))
    size = len(_encode(found))
    if size <= MOST_EVENT:
        return found
    return {"cut": True, "bytes": size, "text": _beginning(_encode(found), MOST_EVENT // 4)}


def clean_value(value: object) -> object:
    """A value with everything in it made harmless, and nothing of its texts cut off."""
    return _made_harmless(value, sys.maxsize, _DEEPEST)


def result_value(value: object) -> object:
    """A result as it is kept: as it is, or the beginning of its text when it is too long."""
    found = _made_harmless(value, MOST_RESULT, _DEEPEST)
    written = _encode(found)
    if len(written) <= MOST_RESULT:
        return found
    if isinstance(found, str):
        # Half of it, because a character may be written in several bytes.
        return cut(found, MOST_RESULT // 2) if len(found) > MOST_RESULT // 2 else cut(found, MOST_RESULT // 6)
    return _beginning(written, MOST_RESULT // 4)


def _beginning(written: bytes, most: int) -> str:
    return cut(harmless(written.decode("utf-8", "replace")), most)


def _made_harmless(value: object, most: int, left: int) -> object:
    if isinstance(value, str):
        return cut(harmless(value), most)
    if not left:
        return "…"
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {cut(harmless(str(name)), 256): _made_harmless(one, most, left - 1) for name, one in pairs}
    if isinstance(value, list | tuple):
        return [_made_harmless(one, most, left - 1) for one in cast("list[object]", value)]
    return value if value is None or isinstance(value, bool | int | float) else cut(harmless(str(value)), most)
