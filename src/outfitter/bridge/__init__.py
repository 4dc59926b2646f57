"""How an MCP tool becomes a typed Python tool: servers connected, their tools bridged, their answers read.

    with McpIntegrationSection(servers=[MCPServer.uvx("git", "mcp-server-git")], session=session) as section:
        section.tools()          # git_status, git_diff, …: typed tools with policies, transactions and events

``section`` is what a prompt holds, ``live`` connects and keeps up, ``pool`` shares connections, ``home`` is the loop
they live on. ``bridging`` makes tools of lists, ``calling`` is one call, ``results`` reads its answer. The catalog's
definitions are offered here too, because sections are written with them.
"""

from outfitter.bridge.bridging import BridgeOptions, ServerTools, ToolSet, bridge_tools
from outfitter.bridge.connection import McpConnection
from outfitter.bridge.events import ToolHeldBack, ToolListChanged
from outfitter.bridge.external import MCPToolBundle, McpToolProvider, server_config
from outfitter.bridge.live import LiveServers
from outfitter.bridge.pin_file import PinFile
from outfitter.bridge.pool import McpConnectionPool
from outfitter.bridge.proxy import MCPProxy, ProxiedMCPServer
from outfitter.bridge.resources import McpContent, McpReading, McpResource, McpResources
from outfitter.bridge.results import ResultLimits, read_answer
from outfitter.bridge.section import IntegrationOptions, McpIntegrationParams, McpIntegrationSection
from outfitter.bridge.shelf import ResultShelf
from outfitter.catalog import MCPServer, SseTransport, StdioTransport, StreamableHttpTransport

MCPServerConfig = MCPServer
McpServerConfig = MCPServer

__all__ = [
    "BridgeOptions",
    "IntegrationOptions",
    "LiveServers",
    "MCPProxy",
    "MCPServer",
    "MCPServerConfig",
    "MCPToolBundle",
    "McpConnection",
    "McpConnectionPool",
    "McpContent",
    "McpIntegrationParams",
    "McpIntegrationSection",
    "McpReading",
    "McpResource",
    "McpResources",
    "McpServerConfig",
    "McpToolProvider",
    "PinFile",
    "ProxiedMCPServer",
    "ResultLimits",
    "ResultShelf",
    "ServerTools",
    "SseTransport",
    "StdioTransport",
    "StreamableHttpTransport",
    "ToolHeldBack",
    "ToolListChanged",
    "ToolSet",
    "bridge_tools",
    "read_answer",
    "server_config",
]
