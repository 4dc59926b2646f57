"""Do the headers of a modern request say what its body says? Pure.

The modern era repeats version, method, name and some arguments in headers, and a server that reads the body must
compare them. Used by ``http_routes``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from outfitter.testing.exchange import (
    CAPABILITIES_KEY,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    VERSION_KEY,
    Refusal,
    Request,
    part,
)
from outfitter.testing.script import Script

_NAMED = frozenset({"tools/call", "prompts/get", "resources/read"})
_WRAPPED = re.compile(r"=\?base64\?(.*)\?=")


def check_headers(script: Script, headers: Mapping[str, str], request: Request) -> None:
    """Refuse a request whose headers and body disagree."""
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in request.meta]
    if missing:
        raise Refusal(INVALID_PARAMS, f"_meta lacks {' and '.join(missing)}")
    _compare("MCP-Protocol-Version", headers.get("MCP-Protocol-Version"), request.meta[VERSION_KEY])
    _compare("Mcp-Method", headers.get("Mcp-Method"), request.method)
    if request.method in _NAMED:
        _compare("Mcp-Name", unwrap(headers.get("Mcp-Name")), request.target)
    if request.method == "tools/call":
        _check_arguments(script, headers, request)


def _check_arguments(script: Script, headers: Mapping[str, str], request: Request) -> None:
    tool = next((tool for tool in script.tools if tool.name == request.target), None)
    properties: Mapping[str, Any] = tool.schema.get("properties", {}) if tool else {}
    arguments = part(request.params, "arguments")
    for name, schema in properties.items():
        mark = schema.get("x-mcp-header")
        if mark is not None:
            header = f"Mcp-Param-{mark}"
            _compare(header, unwrap(headers.get(header)), _text(arguments.get(name)))


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def unwrap(value: str | None) -> str | None:
    """The text of a header value, which may travel as Base64."""
    wrapped = _WRAPPED.fullmatch(value or "")
    if wrapped is None:
        return value
    try:
        return base64.b64decode(wrapped[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _compare(header: str, given: str | None, wanted: object) -> None:
    if given != wanted:
        raise Refusal(HEADER_MISMATCH, f"{header} says {given!r}, the body {wanted!r}")
