"""Another program's MCP file over HTTP: what it would add to the registry. Nothing is stored, fetched or started.

The reader is the one of ``outfitter import``: commands in full, literal secrets turned into references, every change
told. Whoever wants the entries sends their documents to ``POST /mcp-servers``, with the rules that hold there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import anyio.to_thread
from msgspec import Meta, Struct

from outfitter.catalog import ServerEntry
from outfitter.coordinator.api.answers import answer
from outfitter.coordinator.api.models import Json, NoQuery
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.errors import InvalidDocument
from outfitter.formats import (
    Client,
    ImportedServer,
    Syntax,
    guess_client,
    parse_text,
    read_client,
    write_entry,
)
from outfitter.storage import User

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office
    from outfitter.coordinator.view import View

_MOST_BYTES = 1024 * 1024
_PASTED, _PASTED_TOML = "pasted.json", "pasted.toml"


class ImportAsked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of another program. Without `client` it is guessed from the text and the name of the file."""

    text: str
    filename: Annotated[str, Meta(max_length=500)] = ""
    client: Client | None = None


class ImportedShown(Struct, frozen=True, kw_only=True):
    """A server of the file as an entry of the registry."""

    id: str
    target: Annotated[str, Meta(description="The whole command, or the address.")]
    notes: Annotated[list[str], Meta(description="What was changed on the way, and what to set.")]
    standing: Annotated[
        Literal["new", "same", "differs"], Meta(description="Whether the registry has one of this id, and the same.")
    ]
    version: Annotated[int | None, Meta(description="The version that is in the registry.")]
    document: Json


class ImportShown(Struct, frozen=True, kw_only=True):
    """What a file would add."""

    client: Client
    items: list[ImportedShown]


async def _preview(office: Office, asked: Asked[NoQuery]) -> Response:
    wanted = asked.read(ImportAsked)
    client, found = await anyio.to_thread.run_sync(_read, wanted)  # a long text must not keep others waiting
    view = office.coordinator.live.view
    return answer(ImportShown(client=client, items=[_shown(one, view) for one in found]))


def _read(wanted: ImportAsked) -> tuple[Client, tuple[ImportedServer, ...]]:
    names = (wanted.filename,) if wanted.filename else (_PASTED, _PASTED_TOML)
    guesses = ((name, wanted.client or guess_client(name, wanted.text)) for name in names)
    name, client = next(((name, client) for name, client in guesses if client is not None), ("", None))
    if client is None:
        raise _nobodys(wanted, names[0])
    return client, read_client(client, wanted.text, wanted.filename or name)


def _nobodys(wanted: ImportAsked, name: str) -> InvalidDocument:
    """Why it is nobody's file: it cannot be read at all, or nothing in it is known."""
    if not wanted.text.strip():
        return InvalidDocument("there is nothing in it", source=name, hint="paste the file's text")
    looks_like_json = wanted.text.lstrip().startswith(("{", "[", "//", "/*"))
    syntax = Syntax.TOML if name.endswith(".toml") or not looks_like_json else Syntax.JSONC
    try:
        parse_text(wanted.text, source=name, syntax=syntax)
    except InvalidDocument as error:
        return error
    hint = f"say which program it is of: {', '.join(Client)}"
    return InvalidDocument("cannot tell which program this file belongs to", source=name, hint=hint)


def _shown(one: ImportedServer, view: View) -> ImportedShown:
    document = write_entry(one.entry)
    known = view.value(User("mcp-servers", one.entry.id))
    stored = view.entries.get(User("mcp-servers", one.entry.id))
    is_same = isinstance(known, ServerEntry) and write_entry(known) == document
    return ImportedShown(
        id=one.entry.id,
        target=one.command_line,
        notes=list(one.notes),
        standing="new" if stored is None else "same" if is_same else "differs",
        version=None if stored is None else stored.version,
        document=document,
    )


ROUTES = (
    Route("POST", "/import", "What another program's file would add; nothing is stored or started", _preview,
          Answer(200, ImportShown), "registry.preview", body=ImportAsked, most_bytes=_MOST_BYTES),
)  # fmt: skip
