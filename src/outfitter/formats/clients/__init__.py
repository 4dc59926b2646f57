"""Other programs' MCP files: Claude, VS Code, Cursor, JetBrains, Copilot, Codex, and the registry's server.json.

Reading turns each server into a registry entry without literal secrets and tells every change; writing does the
reverse and tells what the program cannot do. Nothing is started, fetched or opened.
"""

from outfitter.formats.clients.clients import read_client, write_client
from outfitter.formats.clients.credentials import find_credentials, is_sensitive, mask_marked
from outfitter.formats.clients.dialects import Client
from outfitter.formats.clients.guess import guess_client
from outfitter.formats.clients.values import ClientFile, ImportedServer

__all__ = [
    "Client",
    "ClientFile",
    "ImportedServer",
    "find_credentials",
    "guess_client",
    "is_sensitive",
    "mask_marked",
    "read_client",
    "write_client",
]
