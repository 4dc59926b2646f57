"""What does a registry of the official MCP API offer? Its list searched, one server read. Nothing is started.

``/v0.1`` is asked first and ``/v0`` where there is none. The guard of all connections holds here too, no redirect is
followed, and what comes back is bounded. Reading a ``server.json`` is ``formats``; adding it is ``squad``; publishing
the team's own registry in this form is ``coordinator``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

from outfitter.basics import Secret
from outfitter.errors import Invalid, NotFound, ProtocolViolation
from outfitter.formats import Client, ImportedServer, Syntax, read_client, render_text
from outfitter.upstream import Guard, HttpClient, find_document

LATEST = "latest"
_VERSIONS = ("v0.1", "v0")
_PAGE, _MOST_PAGES = 50, 40
_PAGE_BYTES, _SERVER_BYTES = 8 * 1024 * 1024, 1024 * 1024
_OFFICIAL = "io.modelcontextprotocol.registry/official"
_LONGEST_NAME = 255
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Offer:
    """One version of a server, as a registry lists it."""

    name: str
    version: str
    title: str
    description: str
    status: str
    """``active``, ``deprecated`` or ``deleted``; empty where the registry does not say."""
    message: str
    updated_at: str
    document: Fields = field(repr=False)
    """Its server.json."""

    def ways(self, source: str) -> tuple[ImportedServer, ...]:
        """Each way to reach it as an entry of a catalog; InvalidServer when there is none that can be used."""
        return read_client(Client.SERVER_JSON, render_text(dict(self.document), Syntax.JSON), source)


@dataclass(frozen=True, slots=True)
class OfficialRegistry:
    """A registry at an address; ``token`` goes with every request, where one is given."""

    url: str
    client: HttpClient = field(repr=False)
    token: Secret | None = field(default=None, repr=False)

    async def search(self, text: str = "", *, most: int = 30) -> tuple[Offer, ...]:
        """The newest version of each server whose name has the text in it, at most so many."""
        found: list[Offer] = []
        seen: set[str] = set()
        cursor = ""
        while len(found) < most and len(seen) < _MOST_PAGES:
            given = {"search": text, "version": LATEST, "limit": str(min(_PAGE, most - len(found))), "cursor": cursor}
            page = await self._ask("servers", {name: value for name, value in given.items() if value}, _PAGE_BYTES)
            if page is None:
                hint = "name the address before /v0.1, such as https://registry.example"
                raise NotFound("what answers there is no registry of MCP servers", where=self.url, hint=hint)
            found += (_offer(item) for item in _list(page, "servers"))
            metadata = _object(page.get("metadata"))
            cursor = _text(metadata, "nextCursor") or _text(metadata, "next_cursor")
            if not cursor or cursor in seen:
                break
            seen.add(cursor)
        return tuple(found[:most])

    async def find(self, name: str, version: str = LATEST) -> Offer:
        """One version of a server; NotFound when there is none, or when it was deleted."""
        path = f"servers/{quote(name, safe='')}/versions/{quote(version, safe='')}"
        known = 0 < len(name) <= _LONGEST_NAME and await self._ask(path, {}, _SERVER_BYTES)
        if not known:
            told = f"version {version!a} of {name!a}" if version != LATEST else ascii(name)
            raise NotFound(f"the registry has no {told}", where=self.url, hint="'outfitter registry search WORD' looks")
        offer = _offer(known)
        if offer.name != name or version not in {LATEST, offer.version}:
            raise ProtocolViolation("the registry answered with another server than it was asked for", where=self.url)
        if offer.status == "deleted":
            raise NotFound(
                f"{name!a} {offer.version} was deleted: {offer.message or 'no reason given'}", where=self.url
            )
        return offer

    async def _ask(self, path: str, query: Mapping[str, str], limit: int) -> Fields | None:
        """The answer of the first version of the API that has one; None when none has."""
        headers = {} if self.token is None else {"Authorization": self.token}
        asked = f"?{urlencode(query)}" if query else ""
        for base in _bases(self.url):
            where = f"registry {self.url}"
            found = await find_document(self.client, f"{base}/{path}{asked}", where=where, headers=headers, limit=limit)
            if found is not None:
                return _fields(found)
        return None


@asynccontextmanager
async def open_official(
    url: str, *, token: str | None = None, is_private: bool = False
) -> AsyncGenerator[OfficialRegistry]:
    """The registry at an address as long as the block lasts; Invalid when it is no address.

    ``is_private``: it is on a private network of one's own.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise Invalid("this is no address of a registry", hint="such as https://registry.example")
    given = None if token is None else Secret(f"Bearer {token}")
    async with HttpClient(Guard(allow_private=is_private)) as client:
        yield OfficialRegistry(url.rstrip("/"), client, given)


def _bases(url: str) -> tuple[str, ...]:
    """Where the API is; an address that names its version is taken as it is."""
    last = url.rpartition("/")[2]
    return (url,) if last in _VERSIONS else tuple(f"{url}/{version}" for version in _VERSIONS)


def _offer(value: object) -> Offer:
    """What is listed; the first registries wrote the server itself, later ones put it beside what they say of it."""
    item = _fields(value)
    server = _fields(item.get("server", item))
    said = _object(_object(item.get("_meta")).get(_OFFICIAL))
    name, version = _text(server, "name"), _text(server, "version")
    if not name or not version:
        raise ProtocolViolation("the registry lists a server without a name or version")
    return Offer(
        name,
        version,
        _text(server, "title"),
        _text(server, "description"),
        _text(said, "status") or _text(server, "status"),
        _text(said, "statusMessage"),
        _text(said, "updatedAt") or _text(said, "publishedAt"),
        server,
    )


def _fields(value: object) -> Fields:
    if not isinstance(value, dict):
        raise ProtocolViolation("the registry's answer is not of the official form")
    return cast("Fields", value)


def _object(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _list(fields: Fields, key: str) -> list[object]:
    value = fields.get(key)
    if not isinstance(value, list):
        raise ProtocolViolation(f"the registry's answer has no list '{key}'")
    return cast("list[object]", value)


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""
