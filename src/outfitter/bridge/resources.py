"""The resources of connected servers: listed, found by their URI, and read.

Handlers find it with ``context.resources.get(McpResources)``. Every call has an asynchronous twin. What is read is data
of a foreign server and goes nowhere by itself.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from outfitter.bridge.connection import McpConnection
from outfitter.bridge.pool import McpConnectionPool
from outfitter.errors import McpError, NotFound
from outfitter.upstream import Message


@dataclass(frozen=True, slots=True)
class McpResource:
    """One resource, or one template of resources, as its server lists it."""

    server: str
    uri: str
    """The URI, or the URI template."""
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""


@dataclass(frozen=True, slots=True)
class McpContent:
    """One part of what a resource holds: text, or bytes."""

    uri: str
    mime_type: str
    text: str | None = None
    data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class McpReading:
    """What a resource holds."""

    server: str
    uri: str
    contents: tuple[McpContent, ...]

    @property
    def text(self) -> str:
        """Every text in it."""
        return "\n".join(content.text for content in self.contents if content.text is not None)

    @property
    def data(self) -> bytes:
        """Every byte in it that is not text."""
        return b"".join(content.data for content in self.contents if content.data is not None)


@dataclass(frozen=True, slots=True)
class McpResources:
    """What the servers of a pool hold besides tools."""

    pool: McpConnectionPool = field(repr=False)

    def list(self, server: str | None = None) -> tuple[McpResource, ...]:
        """Every resource of this server, or of all."""
        asked = self._asked(server)
        return tuple(item for one in asked for item in _resources(one, one.list_resources(), "uri"))

    async def alist(self, server: str | None = None) -> tuple[McpResource, ...]:
        """Every resource of this server, or of all."""
        asked = self._asked(server)
        return tuple([item for one in asked for item in _resources(one, await one.alist_resources(), "uri")])

    def templates(self, server: str | None = None) -> tuple[McpResource, ...]:
        """Every template of this server, or of all."""
        asked = self._asked(server)
        return tuple(item for one in asked for item in _resources(one, one.list_resource_templates(), "uriTemplate"))

    async def atemplates(self, server: str | None = None) -> tuple[McpResource, ...]:
        """Every template of this server, or of all."""
        asked = self._asked(server)
        found = [(one, await one.alist_resource_templates()) for one in asked]
        return tuple(item for one, listed in found for item in _resources(one, listed, "uriTemplate"))

    def read(self, uri: str, server: str | None = None) -> McpReading:
        """What the resource holds; without a server, the first that has it."""
        refusals: list[McpError] = []
        for one in self._asked(server):
            try:
                return _reading(one, uri, one.read_resource(uri))
            except McpError as refusal:
                refusals.append(refusal)
        raise self._missing(uri, refusals)

    async def aread(self, uri: str, server: str | None = None) -> McpReading:
        """What the resource holds; without a server, the first that has it."""
        refusals: list[McpError] = []
        for one in self._asked(server):
            try:
                return _reading(one, uri, await one.aread_resource(uri))
            except McpError as refusal:
                refusals.append(refusal)
        raise self._missing(uri, refusals)

    def _asked(self, server: str | None) -> tuple[McpConnection, ...]:
        """The servers that say that they have resources."""
        if server is None:
            return tuple(one for one in self.pool.connections() if _has_resources(one))
        found = self.pool.get(server)
        if found is None:
            raise NotFound(f"no server '{server}' is connected")
        return (found,)

    def _missing(self, uri: str, refusals: Iterable[McpError]) -> McpError | NotFound:
        told = list(refusals)
        if len(told) == 1:
            return told[0]
        said = "; ".join(str(refusal) for refusal in told)
        return NotFound(f"no connected server has the resource '{uri}'" + (f": {said}" if said else ""))


def _has_resources(connection: McpConnection) -> bool:
    agreed = connection.upstream.agreement
    return agreed is None or "resources" in agreed.capabilities


def _resources(connection: McpConnection, listed: Iterable[Message], key: str) -> Iterable[McpResource]:
    for item in listed:
        text = {name: str(item.get(name) or "") for name in (key, "name", "title", "description", "mimeType")}
        if text[key]:
            yield McpResource(connection.name, *text.values())


def _reading(connection: McpConnection, uri: str, answer: Message) -> McpReading:
    contents = answer.get("contents")
    parts = cast("list[Any]", contents) if isinstance(contents, list) else []
    read = tuple(_content(cast("Message", part), uri) for part in parts if isinstance(part, dict))
    return McpReading(connection.name, uri, read)


def _content(part: Message, uri: str) -> McpContent:
    text, blob = part.get("text"), part.get("blob")
    return McpContent(
        str(part.get("uri") or uri),
        str(part.get("mimeType") or ""),
        text if isinstance(text, str) else None,
        _decoded(blob) if isinstance(blob, str) else None,
    )


def _decoded(blob: str) -> bytes | None:
    try:
        return base64.b64decode(blob, validate=True)
    except binascii.Error:
        return None
