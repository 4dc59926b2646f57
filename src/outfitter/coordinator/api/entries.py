"""Servers, capabilities and agents over HTTP: lists, documents with their versions, history, approval.

A server or capability is read and written under one path, as document 4 has it. An agent's path answers the resolved
blueprint (``agents``); its document, whose version a change must name, has a path of its own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from outfitter.coordinator.api.answers import answer, answer_document, nothing, shown
from outfitter.coordinator.api.models import (
    ChangeList,
    ChangeShown,
    DeleteQuery,
    EntriesQuery,
    EntryList,
    EntryQuery,
    EntryRecord,
    NoQuery,
    Paged,
    Rollback,
    UserList,
    UserShown,
)
from outfitter.coordinator.api.routing import Answer, Concern, Route
from outfitter.coordinator.values import Shown

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office
    from outfitter.storage import Kind

_TAGGED = ("ETag",)


def routes_of(kind: Kind, document: type[Any]) -> tuple[Route[Any], ...]:
    """Every route of a kind of entry."""
    one = f"/{kind}/{{id}}" if kind == "mcp-servers" else f"/{kind}/{{name}}"
    is_agent = kind == "agents"
    concern: Concern = "path" if is_agent else "nobody"
    return (
        Route("GET", f"/{kind}", f"List {kind}", partial(_list, kind), Answer(model=EntryList),
              "registry.read", EntriesQuery),
        Route("POST", f"/{kind}", f"Create one of {kind}", partial(_create, kind),
              Answer(201, document, ("ETag", "Location")), "registry.write", body=document, problems=(409,)),
        Route("GET", f"{one}/document" if is_agent else one, "Read the document", partial(_read, kind),
              Answer(200, document, _TAGGED, other=EntryRecord), "registry.read", EntryQuery, concerns=concern),
        Route("PUT", one, "Replace the document", partial(_replace, kind), Answer(200, document, _TAGGED),
              "registry.write", body=document, is_versioned=True, problems=(409,)),
        Route("DELETE", one, "Delete it; 409 when others refer to it", partial(_delete, kind), Answer(204),
              "registry.write", DeleteQuery, is_versioned=True, problems=(409, 422)),
        Route("GET", f"{one}/history", "Who changed it, when, from what to what", partial(_history, kind),
              Answer(model=ChangeList), "registry.read", Paged, concerns=concern),
        Route("GET", f"{one}/users", "Who refers to it", partial(_users, kind), Answer(model=UserList),
              "registry.read", Paged, concerns=concern),
        Route("POST", f"{one}/rollback", "Put an earlier version back, as a new one", partial(_roll_back, kind),
              Answer(200, document, _TAGGED), "registry.write", body=Rollback, is_versioned=True, problems=(409,)),
    )  # fmt: skip


async def _list(kind: Kind, office: Office, asked: Asked[EntriesQuery]) -> Response:
    query = asked.query
    page = await office.coordinator.entries.list(
        kind, cursor=query.cursor or None, limit=query.limit, text=query.q or None
    )
    return answer(EntryList([record(item) for item in page.items], page.next_cursor))


async def _read(kind: Kind, office: Office, asked: Asked[EntryQuery]) -> Response:
    found = await office.coordinator.entries.get(kind, asked.id)
    return answer(record(found), etag=found.etag) if asked.query.detail else _document(found)


async def _create(kind: Kind, office: Office, asked: Asked[NoQuery]) -> Response:
    made = await office.coordinator.entries.create(kind, asked.document(), asked.author)
    return _document(made, 201, location=f"{asked.prefix}/{kind}/{made.id}")


async def _replace(kind: Kind, office: Office, asked: Asked[NoQuery]) -> Response:
    entries = office.coordinator.entries
    return _document(await entries.replace(kind, asked.id, asked.document(), asked.version, asked.author))


async def _delete(kind: Kind, office: Office, asked: Asked[DeleteQuery]) -> Response:
    entries = office.coordinator.entries
    await entries.delete(kind, asked.id, asked.version, asked.author, force=asked.query.force)
    return nothing()


async def _history(kind: Kind, office: Office, asked: Asked[Paged]) -> Response:
    entries, query = office.coordinator.entries, asked.query
    page = await entries.history(kind, asked.id, cursor=query.cursor or None, limit=query.limit)
    return answer(ChangeList([shown(item, ChangeShown) for item in page.items], page.next_cursor))


async def _users(kind: Kind, office: Office, asked: Asked[Paged]) -> Response:
    entries, query = office.coordinator.entries, asked.query
    page = await entries.users(kind, asked.id, cursor=query.cursor or None, limit=query.limit)
    return answer(UserList([shown(item, UserShown) for item in page.items], page.next_cursor))


async def _changes(office: Office, asked: Asked[Paged]) -> Response:
    query = asked.query
    page = await office.coordinator.entries.changes(cursor=query.cursor or None, limit=query.limit)
    return answer(ChangeList([shown(item, ChangeShown) for item in page.items], page.next_cursor))


CHANGES = Route(
    "GET", "/changes", "Who changed which entry, newest first", _changes, Answer(model=ChangeList), "registry.read",
    Paged,
)  # fmt: skip


async def _roll_back(kind: Kind, office: Office, asked: Asked[NoQuery]) -> Response:
    version = asked.read(Rollback).version
    entries = office.coordinator.entries
    return _document(await entries.rollback(kind, asked.id, version, asked.version, asked.author))


async def _approve(kind: Kind, office: Office, asked: Asked[NoQuery]) -> Response:
    """Let a command be started, as it stands in the version that If-Match names."""
    entries = office.coordinator.entries
    found = await entries.approve(asked.id, asked.version, asked.author, kind)
    return answer(record(found), etag=found.etag)


APPROVE = Route(
    "POST", "/mcp-servers/{id}/approve", "Let the present command of a stdio server be started",
    partial(_approve, "mcp-servers"), Answer(200, EntryRecord, _TAGGED), "stdio.approve", is_versioned=True,
    problems=(409, 422),
)  # fmt: skip
APPROVE_EXECUTOR = Route(
    "POST", "/agents/{name}/approve", "Let the present executor of an agent's runs be started",
    partial(_approve, "agents"), Answer(200, EntryRecord, _TAGGED), "stdio.approve", is_versioned=True,
    problems=(409, 422),
)  # fmt: skip


def record(entry: Shown) -> EntryRecord:
    """An entry with what is known about it."""
    return shown(entry, EntryRecord)


def _document(entry: Shown, status: int = 200, **headers: str) -> Response:
    return answer_document(entry.document, status, etag=entry.etag, **headers)
