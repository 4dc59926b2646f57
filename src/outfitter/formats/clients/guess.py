"""Whose file is this? By what is in it, and by its name where that leaves more than one answer."""

from __future__ import annotations

from collections.abc import Mapping

from outfitter.errors import InvalidDocument
from outfitter.formats.clients.dialects import Client
from outfitter.formats.clients.values import as_object
from outfitter.formats.text import JsonObject, Syntax, parse_text

_ENDINGS: Mapping[str, Client] = {
    "claude_desktop_config.json": Client.CLAUDE_DESKTOP,
    "/.mcp.json": Client.CLAUDE_CODE,
    "/.claude.json": Client.CLAUDE_CODE,
    "/.cursor/mcp.json": Client.CURSOR,
    "/.junie/mcp/mcp.json": Client.JETBRAINS,
    "/.junie/mcp.json": Client.JETBRAINS,
    "/.idea/mcp.json": Client.JETBRAINS,
    "/mcp-config.json": Client.COPILOT_CLI,
    "/.github/mcp.json": Client.COPILOT_CLI,
}


def guess_client(filename: str, data: str | bytes) -> Client | None:
    """The client whose file this seems to be; None when it is nobody's that Outfitter knows."""
    path = "/" + filename.replace("\\", "/")
    try:
        document = parse_text(data, source=filename, syntax=Syntax.TOML if path.endswith(".toml") else Syntax.JSONC)
    except InvalidDocument:
        return None
    if "mcp_servers" in document:
        return Client.CODEX
    if "packages" in document or "remotes" in document:
        return Client.SERVER_JSON if "name" in document else None
    if isinstance(document.get("servers"), dict):
        return None if "agentServers" in document or "/.squad/" in path else Client.VSCODE
    return _by_name(path, document) if isinstance(document.get("mcpServers"), dict) else None


def _by_name(path: str, document: JsonObject) -> Client | None:
    """One of the many that say ``mcpServers``. Claude Code's reader understands most, so a doubt goes to it."""
    servers = [as_object(server) for server in as_object(document["mcpServers"]).values()]
    if any("ref" in server for server in servers):
        return None
    for ending, client in _ENDINGS.items():
        if path.endswith(ending):
            return client
    if any("tools" in server or server.get("type") == "local" for server in servers):
        return Client.COPILOT_CLI
    is_editor = any("${env:" in str(server) or "${workspaceFolder" in str(server) for server in servers)
    return Client.CURSOR if is_editor else Client.CLAUDE_CODE
