"""An MCP server as Claude Code is told to connect it.

This is where secrets of a server are revealed, because Claude Code must be given text. They go over its stdin: no
argument, no variable and no file of it ever holds one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from outfitter.basics import MASK
from outfitter.catalog import MCPServer
from outfitter.errors import McpConnectionError, OutfitterError
from outfitter.resolution import ArmedServer, ArmedStdio
from outfitter.upstream import arm_servers, prepare_launch

Json: TypeAlias = dict[str, Any]
_SHORTEST_HIDDEN = 4
_CLEAN_START = """cd -- "$1" || exit 126
keep=" $2 "
shift 2
for name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'); do
  case "$keep" in *" $name "*) ;; *) unset "$name" ;; esac
done
exec "$@"
"""
"""Starts a program in a folder with the named variables alone: Claude Code would hand its own on, keys and all."""


@dataclass(frozen=True, slots=True)
class Definition:
    """How one server is connected; ``hidden`` are the texts that no error may show."""

    config: Json = field(repr=False)
    hidden: tuple[str, ...] = field(default=(), repr=False)

    def mask(self, said: str) -> str:
        """The text without what is hidden."""
        for text in self.hidden:
            said = said.replace(text, MASK)
        return said


def define_servers(servers: Iterable[MCPServer], home: Path, cwd: Path) -> dict[str, Definition | McpConnectionError]:
    """Each server with placeholders and secrets filled in, or why it cannot be connected; may ask files and vaults."""
    wanted = {server.name: server for server in servers}
    armed = arm_servers(wanted.values())
    found: dict[str, Definition | McpConnectionError] = {}
    for name, server in wanted.items():
        try:
            one = armed[name]
            if isinstance(one, OutfitterError):
                raise one
            found[name] = _native(server, one, home, cwd)
        except OutfitterError as error:
            found[name] = McpConnectionError(error.message, server_name=name, hint=error.hint)
    return found


def _native(server: MCPServer, armed: ArmedServer, home: Path, cwd: Path) -> Definition:
    transport = armed.transport
    if isinstance(transport, ArmedStdio):
        launch = prepare_launch(armed, environment={**os.environ, "HOME": str(home)})
        given = [str(launch.cwd or cwd), " ".join(launch.env), *launch.argv]
        config: Json = {"type": "stdio", "command": "/bin/sh", "args": ["-c", _CLEAN_START, "outfitter", *given]}
        return Definition(config | {"env": dict(launch.env)} | _limit(server), launch.hidden)
    headers: Mapping[str, str] = {name: secret.reveal() for name, secret in transport.headers.items()}
    config = {"type": "sse" if transport.is_sse else "http", "url": transport.url.reveal(), "headers": dict(headers)}
    return Definition(config | _limit(server), _hidden(headers.values()))


def _limit(server: MCPServer) -> Json:
    return {"timeout": int(server.limits.call * 1000)}


def _hidden(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted((text for text in texts if len(text) >= _SHORTEST_HIDDEN), key=len, reverse=True))
