"""The two eras of the protocol, and what each request must carry in them.

*Legacy* (up to 2025-11-25): a handshake, sessions, requests from server to client. *Modern* (2026-07-28): no handshake;
every request carries version and capabilities in ``_meta`` and, over HTTP, repeats method and name in headers. Pure.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from outfitter.upstream.wire import Message

MODERN_VERSIONS = ("2026-07-28",)
LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_META = "io.modelcontextprotocol/"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"(?! )[\x20-\x7e]*(?<! )")
_WRAPPED = re.compile(r"=\?base64\?.*\?=", re.DOTALL)
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", re.ASCII)
_ANNOTATION = "x-mcp-header"
_MAY_BE_MIRRORED = frozenset({"string", "integer", "boolean"})
_HOLDS_ONE = frozenset({
    "items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties", "not",
    "if", "then", "else", "contentSchema",
})  # fmt: skip
_HOLDS_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_HOLDS_MAP = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


class Era(StrEnum):
    """Which of the two a server speaks."""

    LEGACY = "legacy"
    MODERN = "modern"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who we say we are, and what our side can do for a server."""

    name: str = "outfitter"
    version: str = "0.1.0"
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def info(self) -> Message:
        """Name and version as the protocol writes them."""
        return {"name": self.name, "version": self.version}


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a server and we agreed on when the link was opened."""

    era: Era
    version: str
    server_info: Message
    capabilities: Message
    instructions: str


def stamp(params: Message | None, identity: Identity, version: str) -> Message:
    """The parameters with the modern era's ``_meta``; what the caller put there already stays."""
    stamped = dict(params or {})
    given = stamped.get("_meta")
    stamped["_meta"] = {
        f"{_META}protocolVersion": version,
        f"{_META}clientCapabilities": dict(identity.capabilities),
        f"{_META}clientInfo": identity.info,
        **(cast("Message", given) if isinstance(given, dict) else {}),
    }
    return stamped


def routing_headers(method: str, params: Message, version: str) -> dict[str, str]:
    """The headers in which a modern request repeats its version, method and name."""
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    key = _NAMED_BY.get(method)
    name = params.get(key) if key else None
    if isinstance(name, str):
        headers["Mcp-Name"] = header_text(name)
    return headers


def header_text(value: str) -> str:
    """The value as a header can carry it: as it is, or wrapped in Base64 when it is not plain ASCII."""
    if _PLAIN.fullmatch(value) and not _WRAPPED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def parameter_headers(mirrored: Mapping[tuple[str, ...], str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The ``Mcp-Param-…`` headers of a call, for the arguments that the tool's schema wants repeated."""
    headers: dict[str, str] = {}
    for path, token in mirrored.items():
        value: Any = arguments
        for key in path:
            value = cast("Message", value).get(key) if isinstance(value, dict) else None
        if isinstance(value, bool):
            headers[f"Mcp-Param-{token}"] = "true" if value else "false"
        elif isinstance(value, str | int):
            headers[f"Mcp-Param-{token}"] = header_text(str(value))
    return headers


def mirrored_parameters(schema: object) -> dict[tuple[str, ...], str]:
    """Which arguments a tool's schema wants repeated in headers; ValueError says why an annotation is not valid."""
    mirrored: dict[tuple[str, ...], str] = {}
    tokens: set[str] = set()
    for path, node in _positions(schema):
        if _ANNOTATION not in node:
            continue
        token = node[_ANNOTATION]
        fault = _annotation_fault(path, token, node)
        if fault is None and str(token).lower() in tokens:
            fault = "is given twice"
        if fault is not None or path is None:
            raise ValueError(f"{_ANNOTATION} at '{'.'.join(path or ())}' {fault}")
        tokens.add(str(token).lower())
        mirrored[path] = str(token)
    return mirrored


def _annotation_fault(path: tuple[str, ...] | None, token: object, node: Message) -> str | None:
    if not path:
        return "stands where no argument is reached by names alone"
    if not isinstance(token, str) or _TOKEN.fullmatch(token) is None:
        return "is not a header name"
    if node.get("type") not in _MAY_BE_MIRRORED:
        return "is on a value that is not a text, an integer or a boolean"
    return None


def _positions(root: object) -> Iterator[tuple[tuple[str, ...] | None, Message]]:
    """Every schema inside a schema, with its path of property names; None once anything else was crossed."""
    waiting: list[tuple[tuple[str, ...] | None, object]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        if not isinstance(node, dict):
            continue
        schema = cast("Message", node)
        yield path, schema
        for keyword, value in schema.items():
            waiting.extend(_inside(path, keyword, value))


def _inside(
    path: tuple[str, ...] | None, keyword: str, value: object
) -> Iterator[tuple[tuple[str, ...] | None, object]]:
    if keyword == "properties" and isinstance(value, dict):
        for name, inner in cast("Message", value).items():
            yield (None if path is None else (*path, name)), inner
    elif keyword in _HOLDS_ONE:
        yield None, value
    elif keyword in _HOLDS_LIST and isinstance(value, list):
        yield from ((None, inner) for inner in cast("list[object]", value))
    elif keyword in _HOLDS_MAP and isinstance(value, dict):
        yield from ((None, inner) for inner in cast("Message", value).values())
