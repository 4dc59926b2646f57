"""One door for all clients: which reader and which writer each has."""

from __future__ import annotations

from collections.abc import Sequence

from outfitter.catalog import ServerEntry
from outfitter.formats.clients.codex import read_codex, write_codex
from outfitter.formats.clients.dialects import Client
from outfitter.formats.clients.reading import read_json_client
from outfitter.formats.clients.registry_reading import read_registry
from outfitter.formats.clients.registry_writing import write_registry
from outfitter.formats.clients.values import ClientFile, ImportedServer
from outfitter.formats.clients.writing import write_json_client


def read_client(client: Client, data: str | bytes, source: str) -> tuple[ImportedServer, ...]:
    """The servers of a client's file as registry entries; an error says the file, the line and the pointer."""
    if client is Client.CODEX:
        return read_codex(data, source)
    if client is Client.SERVER_JSON:
        return read_registry(data, source)
    return read_json_client(client, data, source)


def write_client(client: Client, entries: Sequence[ServerEntry], existing: str | None = None) -> ClientFile:
    """The client's file with these entries in it, whatever else it held kept; the notes say what was lost."""
    if client is Client.CODEX:
        return write_codex(entries, existing)
    if client is Client.SERVER_JSON:
        return write_registry(entries, existing)
    return write_json_client(client, entries, existing)
