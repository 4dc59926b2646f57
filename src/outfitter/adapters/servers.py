"""Which servers an evaluation has: the adapter's own first, then those of the prompt's sections."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from outfitter.catalog import MCPServer
from outfitter.errors import Invalid, PromptValidationError

_log = logging.getLogger(__name__)
_MODES = ("bridge", "ignore")
_DUPLICATE = "adapters.duplicate_mcp"


def join_servers(
    own: Sequence[MCPServer], prompted: Sequence[MCPServer], *, adapter: str, is_strict: bool = False
) -> tuple[MCPServer, ...]:
    """Every server once. Of two that differ under one name the adapter's is used, or the prompt is refused."""
    joined = {server.name: server for server in own}
    for server in prompted:
        first = joined.setdefault(server.name, server)
        if first == server:
            continue
        told = f"server '{server.name}' of the prompt differs from the one of adapter '{adapter}'"
        if is_strict:
            raise PromptValidationError(told, hint="make them equal, or give one of them another name")
        context = {"mcp_name": server.name, "adapter": adapter}
        _log.warning("%s: %s, which is used", _DUPLICATE, told, extra={"event": _DUPLICATE, "context": context})
    return tuple(joined.values())


def check_fitting(mcp: str, servers: Sequence[MCPServer], adapter: str) -> None:
    """Refuse a way with servers that does not exist, servers that would be ignored, and one name twice."""
    if mcp not in _MODES:
        raise Invalid(f"no way '{mcp}' with MCP servers", where=f"adapter '{adapter}'", hint=f"one of {_MODES}")
    if mcp == "ignore" and servers:
        message = "it is given servers and told to ignore them"
        raise Invalid(message, where=f"adapter '{adapter}'", hint="take them out, or mcp='bridge'")
    names = [server.name for server in servers]
    for name in names:
        if names.count(name) > 1:
            raise PromptValidationError(f"adapter '{adapter}' declares server '{name}' twice")
