"""The team's registry as the official API has it: each server as a server.json, for clients that know that form.

Pure, apart from asking ``entries``. Nothing secret is published: it is made from documents as they may be seen, and a
mask becomes a variable that whoever uses it must fill in. A program that no admin approved is not published, nor one
that no package registry knows. Neighbours: ``formats`` writes a server.json, ``api/published`` serves it.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from outfitter.coordinator.entries import Entries
from outfitter.coordinator.values import MASK, PastChange, Shown
from outfitter.errors import OutfitterError, UnknownServer
from outfitter.formats import Client, read_entry, write_client

NAMESPACE = "local.outfitter"
"""What stands before the ids of a team's servers: a name under ``.local`` is nobody else's."""
LATEST = "latest"
_KIND = "mcp-servers"
_KEPT = ("type", "url", "command", "args", "env", "name", "description", "header_schema", "default_headers")
_PAGE, _MOST_PAST = 100, 500
_LONGEST_TITLE = 100
_VERSION = re.compile(r"([1-9][0-9]{0,9})\.0\.0")
_NOT_A_WORD = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Published:
    """One version of a server: its server.json, and what the registry says of it."""

    id: str
    document: Mapping[str, Any]
    published_at: str
    updated_at: str
    is_latest: bool = True


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which servers are wanted: with a text, changed since a moment, in a version; so many after a cursor."""

    text: str = ""
    since: datetime | None = None
    version: str = ""
    cursor: str = ""
    limit: int = 30


async def list_published(entries: Entries, wanted: Wanted) -> tuple[list[Published], str | None]:
    """A page of servers in their newest version, and the cursor of the next one."""
    found: list[Published] = []
    async for shown in _matching(entries, wanted):
        published = publish(shown)
        if published is None or wanted.version not in {"", LATEST, published.document["version"]}:
            continue
        if len(found) == wanted.limit:
            return found, found[-1].id
        found.append(published)
    return found, None


async def _matching(entries: Entries, wanted: Wanted) -> AsyncGenerator[Shown]:
    cursor: str | None = wanted.cursor or None
    text = wanted.text.removeprefix(f"{NAMESPACE}/")
    while True:
        page = await entries.list(_KIND, cursor=cursor, limit=_PAGE, text=text or None)
        for shown in page.items:
            if wanted.since is None or moment(shown.updated_at) >= wanted.since:
                yield shown
        cursor = page.next_cursor
        if cursor is None:
            return


async def versions_of(entries: Entries, name: str) -> list[Published]:
    """Every version of a server that can be published, newest first; UnknownServer when there is none."""
    shown = await entries.get(_KIND, _id_of(name))
    found = {shown.version: publish(shown)}
    cursor, seen = None, 0
    while shown.approved is None and seen < _MOST_PAST:
        page = await entries.history(_KIND, shown.id, cursor=cursor, limit=_PAGE)
        for change in page.items:
            found.setdefault(change.version, _publish_past(change, shown))
        cursor, seen = page.next_cursor, seen + _PAGE
        if cursor is None:
            break
    known = [published for published in found.values() if published is not None]
    if not known:
        raise _unknown(name)
    return known


async def version_of(entries: Entries, name: str, version: str) -> Published:
    """One version of a server, or the newest; UnknownServer when there is none."""
    if version == LATEST:
        published = publish(await entries.get(_KIND, _id_of(name)))
        if published is None:
            raise _unknown(name)
        return published
    if _VERSION.fullmatch(version) is None:
        raise _unknown(name)
    found = next((one for one in await versions_of(entries, name) if one.document["version"] == version), None)
    if found is None:
        raise _unknown(name)
    return found


def publish(shown: Shown) -> Published | None:
    """A server as it is published; None when it cannot be."""
    if shown.approved is False:
        return None
    document = server_json(shown.id, shown.document, shown.version)
    return None if document is None else Published(shown.id, document, shown.created_at, shown.updated_at)


def _publish_past(change: PastChange, shown: Shown) -> Published | None:
    """An earlier version; of servers that start a program none is kept on offer."""
    if change.after is None or "command" in change.after:
        return None
    document = server_json(shown.id, change.after, change.version)
    return None if document is None else Published(shown.id, document, change.at, change.at, is_latest=False)


def server_json(name: str, document: Mapping[str, Any], version: int) -> dict[str, Any] | None:
    """The server.json of an entry's document as it may be seen; None when that form cannot say it."""
    kept = {key: document[key] for key in _KEPT if key in document} | {"id": name}
    kept["default_headers"] = _filled(document.get("default_headers"), name)
    kept["env"] = _filled(document.get("env"), "")
    if isinstance(title := kept.get("name"), str):
        kept["name"] = title[:_LONGEST_TITLE]
    known = {"name": f"{NAMESPACE}/{name}", "version": f"{version}.0.0"}
    try:
        entry = read_entry({key: value for key, value in kept.items() if value}, name, "registry")
        return json.loads(write_client(Client.SERVER_JSON, [entry], json.dumps(known)).text)
    except OutfitterError:
        return None


def _filled(values: object, server: str) -> dict[str, Any]:
    """The values with a reference to a variable in the place of each mask."""
    given: Mapping[str, Any] = cast("Mapping[str, Any]", values) if isinstance(values, Mapping) else {}
    return {
        name: {"$secret": f"env:{_variable(server, name)}"} if value == MASK else value for name, value in given.items()
    }


def _variable(server: str, name: str) -> str:
    """The variable that somebody else keeps such a value in."""
    words = [_NOT_A_WORD.sub("_", word).strip("_").upper() for word in (server, name) if word]
    return "_".join(words) if server else name


def moment(text: str) -> datetime:
    """A moment in ISO 8601; one that names no zone is UTC. ValueError when it is none."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _id_of(name: str) -> str:
    namespace, _, last = name.partition("/")
    if namespace != NAMESPACE or not last:
        raise _unknown(name)
    return last


def _unknown(name: str) -> UnknownServer:
    return UnknownServer(f"no server {name[:200]!a} is published here")
