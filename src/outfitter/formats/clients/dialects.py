"""Which clients there are, and in what their files differ. A new client of the usual kind is one row of the table.

The facts behind each row, and where they were found, are in ``docs/clients.md``. Codex and the registry's server.json
have readers of their own (``codex``, ``registry_reading``); everything else reads this table only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from outfitter.formats.text import Syntax


class Client(StrEnum):
    """The programs whose files Outfitter reads and writes."""

    CLAUDE_DESKTOP = "claude-desktop"
    CLAUDE_CODE = "claude-code"
    VSCODE = "vscode"
    CURSOR = "cursor"
    JETBRAINS = "jetbrains"
    COPILOT_CLI = "copilot-cli"
    CODEX = "codex"
    SERVER_JSON = "server-json"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one client writes its servers down.

    ``types`` has what the client calls stdio, http and sse: an empty word where it writes none, no entry where it
    cannot do it. ``expands`` are the places in which it fills ``${NAME}``. ``prefixed`` says that it writes
    ``${env:NAME}`` instead, and ``inputs`` that it asks for values itself.
    """

    title: str
    file: str
    root: str
    types: Mapping[str, str]
    expands: frozenset[str] = frozenset()
    prefixed: bool = False
    inputs: bool = False
    bare_dollar: bool = False
    carries: frozenset[str] = frozenset()
    syntax: Syntax = Syntax.JSONC


_TYPED = {"stdio": "stdio", "http": "http", "sse": "sse"}
_UNTYPED = {"stdio": "", "http": "", "sse": "sse"}

DIALECTS: Mapping[Client, Dialect] = {
    Client.CLAUDE_DESKTOP: Dialect(
        title="Claude Desktop",
        file="claude_desktop_config.json",
        root="mcpServers",
        types={"stdio": ""},
    ),
    Client.CLAUDE_CODE: Dialect(
        title="Claude Code",
        file=".mcp.json",
        root="mcpServers",
        types=_TYPED,
        expands=frozenset({"command", "args", "env", "url", "headers"}),
        carries=frozenset({"timeout"}),
    ),
    Client.VSCODE: Dialect(
        title="VS Code",
        file=".vscode/mcp.json",
        root="servers",
        types=_TYPED,
        prefixed=True,
        inputs=True,
        carries=frozenset({"cwd"}),
    ),
    Client.CURSOR: Dialect(
        title="Cursor",
        file=".cursor/mcp.json",
        root="mcpServers",
        types={**_UNTYPED, "stdio": "stdio"},
        prefixed=True,
        carries=frozenset({"cwd"}),
    ),
    Client.JETBRAINS: Dialect(
        title="JetBrains",
        file=".junie/mcp/mcp.json",
        root="mcpServers",
        types=_UNTYPED,
    ),
    Client.COPILOT_CLI: Dialect(
        title="Copilot CLI",
        file="~/.copilot/mcp-config.json",
        root="mcpServers",
        types={**_TYPED, "stdio": "local"},
        expands=frozenset({"env", "headers"}),
        bare_dollar=True,
        carries=frozenset({"cwd", "tools", "timeout"}),
    ),
    Client.CODEX: Dialect(
        title="Codex",
        file="~/.codex/config.toml",
        root="mcp_servers",
        types={"stdio": "", "http": ""},
        expands=frozenset({"env", "headers"}),
        carries=frozenset({"cwd", "tools", "timeout", "connect_timeout", "required"}),
        syntax=Syntax.TOML,
    ),
}
