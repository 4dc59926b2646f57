"""What do the servers offer that Copilot will connect? Asked for here first, by connections of our own.

Copilot knows lists of tools to include and nothing else, so globs and exclusions are settled against the real lists. A
server that cannot be connected is left out, or is an error, as with every other adapter. The connections are gone
before Copilot makes its own.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from outfitter.adapters.copilot.names import name_all
from outfitter.adapters.copilot.servers import Told, tell
from outfitter.bridge import BridgeOptions, LiveServers
from outfitter.calls import tell_missing
from outfitter.catalog import MCPServer
from outfitter.errors import Invalid, McpConnectionError
from outfitter.tools import Tool

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Peeked:
    """The servers as Copilot is told of them, and their tools by the names that the model is shown."""

    told: Told = field(default_factory=lambda: Told({}, {}))
    tools: dict[str, Tool[Any, Any]] = field(default_factory=dict[str, Tool[Any, Any]])
    missing: str = ""
    """What the model is told of servers that cannot be connected."""


async def peek(servers: Sequence[MCPServer], bridging: BridgeOptions, taken: Sequence[str]) -> Peeked:
    """What these servers offer; McpConnectionError for a required one, Invalid or Conflict for names that cannot be."""
    if not servers:
        return Peeked()
    live, fallbacks = LiveServers(servers, options=bridging), {server.name: server.fallback for server in servers}
    try:
        await live.aconnect()
    except McpConnectionError as error:
        if any(server.required for server in servers):
            raise
        _log.warning("not connected: %s", error)
        return Peeked(missing=tell_missing(fallbacks, fallbacks))
    try:
        found = {key: entry.tool for key, entry in live.tool_set.bridged.items()}
        down = sorted(live.failures)
        standing = [server for server in servers if server.name not in down]
        armed = await anyio.to_thread.run_sync(live.pool.arm, standing)
    finally:
        with anyio.CancelScope(shield=True):
            await live.adisconnect()
    named = name_all(found, taken)
    included = {server.name: [key.tool for key in found if key.server == server.name] for server in standing}
    missing = tell_missing(down, fallbacks)
    return Peeked(tell(standing, armed, included), {name: found[key] for name, key in named.items()}, missing)


def joined(servers: Sequence[MCPServer], *more: Sequence[MCPServer]) -> tuple[MCPServer, ...]:
    """Every server once; Invalid when two of one name differ, because Copilot would mix up their tools."""
    known = {server.name: server for server in servers}
    for server in (each for group in more for each in group):
        if known.setdefault(server.name, server) != server:
            message = f"server '{server.name}' of an agent differs from another of its name"
            raise Invalid(message, where="copilot", hint="give one of them another name")
    return tuple(known.values())
