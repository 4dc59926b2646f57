"""Which headers exist, which values they take, and which are never allowed.

The chain that decides *whose* value wins is ``resolution``; sending them is ``upstream``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

from outfitter.basics import Secret, SecretRef, quote
from outfitter.errors import InvalidHeader

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
HeaderSetting: TypeAlias = "JsonValue | SecretRef | Secret"
"""What one level says about one header: a value, a reference, or None to remove it."""
HeaderSettings: TypeAlias = Mapping[str, HeaderSetting]

MAX_VALUE_BYTES = 8 * 1024
MAX_TOTAL_BYTES = 16 * 1024
_MAX_NAME = 128

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^`|~-]+", re.ASCII)
_PRINTABLE = re.compile(r"(?! )[\x20-\x7e]*(?<! )", re.ASCII)
_FRAMED_BY_TRANSPORT = frozenset(
    [
        "accept",
        "accept-encoding",
        "connection",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "last-event-id",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_FORBIDDEN_PREFIXES = ("content-", "mcp-")


class HeaderType(StrEnum):
    """How a header's value is written in files and turned into text."""

    STRING = "string"
    JSON = "json"
    BOOLEAN = "boolean"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class HeaderSchema:
    """What a server says about one header it accepts."""

    type: HeaderType = HeaderType.STRING
    description: str = ""
    required: bool = False
    sensitive: bool = False
    internal: bool = False
    example: str = ""
    locked: bool = False
    narrows: bool = False
    merges: bool = False

    def __post_init__(self) -> None:
        """Refuse flags that contradict each other."""
        if self.merges and self.type is not HeaderType.JSON:
            raise InvalidHeader("'merge': 'shallow' needs 'type': 'json'")
        if self.narrows and self.type not in {HeaderType.STRING, HeaderType.JSON}:
            raise InvalidHeader("'narrow': 'list' needs 'type': 'string' or 'json'")
        if self.narrows and self.merges:
            raise InvalidHeader("'narrow' and 'merge' cannot stand together", hint="a list narrows, an object merges")


@lru_cache(maxsize=4096)
def name_fault(name: str) -> str | None:
    """Why no level may set a header of this name; None when it may."""
    if "_" in name:
        return "names with underscores are refused: servers confuse them with '-'"
    if len(name) > _MAX_NAME or _TOKEN.fullmatch(name) is None:
        return "not a header name: letters, digits and '-' only, at most 128 characters"
    lower = name.lower()
    if lower in _FRAMED_BY_TRANSPORT or lower.startswith(_FORBIDDEN_PREFIXES):
        return "this header belongs to the transport and cannot be configured"
    return None


def text_fault(text: str) -> str | None:
    """Why this text cannot be a header's value; None when it can. Never quotes the text."""
    if len(text) > MAX_VALUE_BYTES:
        return f"the value is longer than {MAX_VALUE_BYTES} bytes"
    if _PRINTABLE.fullmatch(text) is None:
        return (
            "the value may hold printable ASCII only, with no line break, control character or space at either end; "
            "a header of type json is escaped and takes any text"
        )
    return None


def json_text(value: JsonValue) -> str:
    """Compact JSON in ASCII, as it is sent."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def type_fault(value: JsonValue, kind: HeaderType) -> str | None:
    """Why this value is not of the declared type; None when it is."""
    if isinstance(value, str):
        return _text_type_fault(value, kind)
    if kind is HeaderType.JSON:
        return None
    if kind is HeaderType.BOOLEAN:
        return None if isinstance(value, bool) else "expected true or false"
    if kind is HeaderType.NUMBER:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if is_number else "expected a number"
    return "expected a text; declare the header as json, boolean or number to give it another value"


def _text_type_fault(text: str, kind: HeaderType) -> str | None:
    if kind is HeaderType.STRING:
        return None
    if kind is HeaderType.BOOLEAN:
        return None if text in {"true", "false"} else "expected true or false"
    try:
        parsed = json.loads(text)
    except ValueError:
        return "expected a number" if kind is HeaderType.NUMBER else "expected JSON: the text cannot be parsed"
    return type_fault(parsed, HeaderType.NUMBER) if kind is HeaderType.NUMBER else None


def setting_fault(value: HeaderSetting) -> str | None:
    """Why no header could carry this value, whatever its declared type; None when one could."""
    if value is None or isinstance(value, SecretRef):
        return None
    if isinstance(value, Secret):
        return value.fault(text_fault)
    if isinstance(value, str):
        return text_fault(value)
    try:
        return text_fault(json_text(value))
    except ValueError:
        return "NaN and Infinity are not JSON"


def check_settings(settings: HeaderSettings, *keys: str, where: str = "") -> None:
    """Refuse a level's headers when a name or value could never be sent; the message holds no value.

    ``keys`` is where they stand in what is being checked, for readers that tell the place.
    """
    for name, value in settings.items():
        fault = name_fault(name)
        if fault is None:
            fault = setting_fault(value)
        if fault is not None:
            raise InvalidHeader(f"header {quote(name)}: {fault}", where=where).under(*keys, name)
    if len(settings) > 1:
        check_no_twins(settings, *keys, where=where)


def check_no_twins(names: Mapping[str, object], *keys: str, where: str = "") -> None:
    """Refuse two spellings of one header inside one level."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            message = f"header {quote(name)} is given twice (also as {quote(other)})"
            raise InvalidHeader(message, where=where).under(*keys, name)
