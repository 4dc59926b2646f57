"""Outfitter: fit out every agent with exactly the MCP servers, tools and headers it should have.

The house, from the ground up (upper rooms import lower ones, never the reverse):

    errors      what can go wrong, by who must act
    basics      names, secrets, provenance
    catalog     WHAT EXISTS: servers, headers, tools, agents, runs
    calls       WHAT IS ASKED, ANSWERED AND REMEMBERED: calls, outcomes, events
    policy      WHO MAY: Allow, Deny or Ask about one call
    resolution  WHAT THIS RUN GETS: the header chain, the plan, explain, why_not
    formats     HOW IT IS WRITTEN: catalog files, squad files, client configs
    schemas     what a JSON Schema means in Python
    upstream    the wire: links, their lifecycle, the pool, secrets
    session     what an agent remembers: slices, events, transactions
    tools       what can be called, and how one call goes
    prompt      what the model reads: sections with their tools and servers
    bridge      MCP tools as typed Python tools
    adapters    prompts evaluated with a model or an agent SDK
    storage     where the catalog is kept
    telemetry   calls as spans, for OpenTelemetry
    gateway     one MCP endpoint per agent, where every call is enforced
    coordinator the team's registry as a service
    app         settings and assembly
    cli         one file per command group
    testing     scriptable servers for your own tests

Names are loaded when they are first used, so ``import outfitter`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outfitter.bridge import McpIntegrationSection
    from outfitter.calls import ToolResult
    from outfitter.catalog import (
        Catalog,
        MCPServer,
        RunRequest,
        SseTransport,
        StdioTransport,
        StreamableHttpTransport,
        ToolFilter,
    )
    from outfitter.prompt import MarkdownSection, Prompt, PromptTemplate
    from outfitter.resolution import explain, resolve, why_not
    from outfitter.session import Session
    from outfitter.storage import load_catalog
    from outfitter.tools import Tool

    MCPServerConfig = MCPServer
    McpServerConfig = MCPServer

__all__ = [
    "Catalog",
    "MCPServer",
    "MCPServerConfig",
    "MarkdownSection",
    "McpIntegrationSection",
    "McpServerConfig",
    "Prompt",
    "PromptTemplate",
    "RunRequest",
    "Session",
    "SseTransport",
    "StdioTransport",
    "StreamableHttpTransport",
    "Tool",
    "ToolFilter",
    "ToolResult",
    "explain",
    "load_catalog",
    "resolve",
    "why_not",
]

_ROOMS = {
    "MarkdownSection": "prompt",
    "McpIntegrationSection": "bridge",
    "Prompt": "prompt",
    "PromptTemplate": "prompt",
    "Session": "session",
    "Tool": "tools",
    "ToolResult": "calls",
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
