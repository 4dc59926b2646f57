"""How does a server get its scope, and from whom? What both example servers do at their door.

The scope of a call comes from the headers of the HTTP request that carries it: whoever runs the agent sets them, and no
tool argument, ``_meta`` or text of a model reaches this file. A header that is missing, doubled or malformed is an
error, never "everything". The key is checked before MCP sees the request. What a scope means is said in
``context_store`` and ``tracker``.
"""

from __future__ import annotations

import argparse
import hmac
import os
import socket
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
KEY_HEADER = "X-API-Key"


def header_of(ctx: Context[Any, Any], name: str) -> str | None:
    """The value of a header of the request that carries this call, in either protocol era; None without one."""
    headers: Mapping[str, str] = ctx.headers or {}
    # Headers may hold a name twice: taking the first would let somebody put his own before the right one.
    found = [value.strip() for given, value in headers.items() if given.lower() == name.lower()]
    if len(found) > 1:
        raise ToolError(f"the request has the header {name} more than once")
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """Answers 401 to every request that does not carry the key, before anything reads it."""

    app: ASGIApp
    key: bytes = field(repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or answer it."""
        if scope["type"] == "lifespan" or self._is_right(scope["headers"]):
            await self.app(scope, receive, send)
        else:
            await PlainTextResponse(f"the header {KEY_HEADER} is missing or wrong", 401)(scope, receive, send)

    def _is_right(self, headers: list[tuple[bytes, bytes]]) -> bool:
        given = [value for name, value in headers if name == KEY_HEADER.lower().encode()]
        return len(given) == 1 and hmac.compare_digest(given[0], self.key)


@dataclass(frozen=True, slots=True)
class Program:
    """One of the example servers, as it is started on the command line."""

    name: str
    module: str
    story: str
    port: int
    key_variable: str
    make: Callable[[Path, bool], MCPServer[Any]]
    """The server on a data file; True fills an empty one with demo data."""

    def run(self) -> None:
        """Serve until told to stop."""
        parser = self._parser()
        given = parser.parse_args()
        key = os.environ.get(self.key_variable)
        if key is not None and not key.strip():
            parser.error(f"{self.key_variable} is set and empty: give it a key, or unset it to ask for none")
        try:
            listener = socket.create_server((HOST, given.port))
        except (OSError, OverflowError) as error:
            parser.error(f"cannot listen on port {given.port}: {error}; choose another with --port")
        with listener:
            try:
                server = self.make(given.data, given.demo)
            except sqlite3.Error as error:
                parser.error(f"cannot use {given.data} as data: {error}")
            app: ASGIApp = server.streamable_http_app(host=HOST)
            if key is not None:
                app = KeyCheck(app, key.encode())
            print(f"{self.name} listens on http://{HOST}:{listener.getsockname()[1]}/mcp", flush=True)
            config = uvicorn.Config(app, log_level="warning", access_log=False, ws="none", timeout_graceful_shutdown=1)
            uvicorn.Server(config).run(sockets=[listener])

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m {self.module}",
            description=self.story,
            epilog=f"When {self.key_variable} is set, every request must carry it as {KEY_HEADER}.",
        )
        parser.add_argument("--port", type=int, default=self.port, help="of 127.0.0.1; 0 is a free one (%(default)s)")
        parser.add_argument("--data", type=Path, required=True, metavar="FILE", help="the SQLite file; made if missing")
        parser.add_argument("--demo", action="store_true", help="fill an empty file with demo data")
        return parser
