"""Outfitter: fit out every agent with exactly the MCP servers, tools and headers it should have.

The house, from the ground up (upper rooms import lower ones, never the reverse):

    errors      what can go wrong, by who must act
    basics      names, secrets, provenance
    catalog     WHAT EXISTS: servers, headers, tools, agents, runs
    policy      WHO MAY: Allow, Deny or Ask about one call
    resolution  WHAT THIS RUN GETS: the header chain, the plan, explain, why_not
    formats     HOW IT IS WRITTEN: catalog files, squad files, client configs
    upstream    the wire: links, their lifecycle, the pool, secrets
    storage     where the catalog is kept
    app         settings and assembly
    cli         one file per command group
    testing     scriptable servers for your own tests

Names are loaded when they are first used, so ``import outfitter`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outfitter.catalog import (
        Catalog,
        MCPServer,
        RunRequest,
        SseTransport,
        StdioTransport,
        StreamableHttpTransport,
        ToolFilter,
    )
    from outfitter.resolution import explain, resolve, why_not
    from outfitter.storage import load_catalog

    MCPServerConfig = MCPServer
    McpServerConfig = MCPServer

__all__ = [
    "Catalog",
    "MCPServer",
    "MCPServerConfig",
    "McpServerConfig",
    "RunRequest",
    "SseTransport",
    "StdioTransport",
    "StreamableHttpTransport",
    "ToolFilter",
    "explain",
    "load_catalog",
    "resolve",
    "why_not",
]

_ROOMS = {
    "explain": "resolution",
    "load_catalog": "storage",
    "resolve": "resolution",
    "why_not": "resolution",
}
_SYNONYMS = {"MCPServerConfig": "MCPServer", "McpServerConfig": "MCPServer"}


def __getattr__(name: str) -> object:
    """Load a name from its room on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'outfitter' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"outfitter.{_ROOMS.get(name, 'catalog')}"), _SYNONYMS.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the names of the front door."""
    return sorted(__all__)
