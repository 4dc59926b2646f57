"""MCP servers for model providers that connect by themselves: what they offer, and how each is configured.

Document 2's option B. Nothing here is governed: whoever gets such a configuration calls the server without policies and
events. Secrets are not written out; a value that is one must be a reference to a variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, cast

from outfitter.basics import SecretRef
from outfitter.bridge.pool import McpConnectionPool
from outfitter.catalog import JsonValue, MCPServer, SseTransport, ToolKey, build_name_map
from outfitter.errors import InvalidServer, NotFound
from outfitter.prompt import ExternalToolBundle, ExternalToolSpec
from outfitter.upstream import Message


@dataclass(frozen=True, slots=True)
class MCPToolBundle(ExternalToolBundle):
    """A program that is an MCP server, as a bundle; its tools are known once somebody has asked it."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = field(default=None, repr=False)

    @classmethod
    def from_npm(cls, name: str, package: str, args: tuple[str, ...] = ()) -> Self:
        """The bundle of an npm package, started by npx."""
        return cls(name, (), "npx", ("-y", package, *args))

    def to_server(self) -> MCPServer:
        """The same as a definition that can be connected, and so governed."""
        return MCPServer.stdio(self.name, self.command, self.args, env=self.env or {})


@dataclass(frozen=True, slots=True)
class McpToolProvider:
    """Configures MCP servers in the way agent SDKs share: a ``type``, and a command or a URL."""

    servers: Sequence[MCPServer]
    pool: McpConnectionPool | None = None
    """Where the servers may be connected; those that are tell which tools they have."""

    def get_bundles(self) -> tuple[ExternalToolBundle, ...]:
        """A bundle for each server; its tools where it is connected."""
        return tuple(self._bundle(server, self._list(server)) for server in self.servers)

    async def aget_bundles(self) -> tuple[ExternalToolBundle, ...]:
        """A bundle for each server; its tools where it is connected."""
        return tuple([self._bundle(server, await self._alist(server)) for server in self.servers])

    def to_provider_config(self, bundle: ExternalToolBundle) -> dict[str, JsonValue]:
        """The server of a bundle as an SDK wants it."""
        if isinstance(bundle, MCPToolBundle):
            return server_config(bundle.to_server())
        for server in self.servers:
            if server.name == bundle.name:
                return server_config(server)
        raise NotFound(f"no server '{bundle.name}' among those of this provider")

    def _list(self, server: MCPServer) -> list[Message]:
        connection = None if self.pool is None else self.pool.get(server.name)
        return [] if connection is None else connection.list_tools()

    async def _alist(self, server: MCPServer) -> list[Message]:
        connection = None if self.pool is None else self.pool.get(server.name)
        return [] if connection is None else await connection.alist_tools()

    def _bundle(self, server: MCPServer, listed: Sequence[Message]) -> ExternalToolBundle:
        offered = {str(tool.get("name")): tool for tool in listed if server.tools.allows(str(tool.get("name")))}
        names = build_name_map((ToolKey(server.name, name), server.prefix) for name in offered)
        specs = tuple(_spec(names.shown[ToolKey(server.name, name)], server, tool) for name, tool in offered.items())
        if server.command is None:
            return ExternalToolBundle(server.name, specs)
        return MCPToolBundle(server.name, specs, server.command, server.args, _texts(server.env, server))


def _spec(shown: str, server: MCPServer, tool: Message) -> ExternalToolSpec:
    output, annotations = tool.get("outputSchema"), tool.get("annotations")
    return ExternalToolSpec(
        shown,
        str(tool.get("description") or ""),
        cast("Mapping[str, JsonValue]", tool.get("inputSchema") or {}),
        output_schema=cast("Mapping[str, JsonValue]", output) if isinstance(output, dict) else None,
        server=server.name,
        tool=str(tool.get("name")),
        title=str(tool.get("title") or ""),
        annotations=cast("Mapping[str, JsonValue]", annotations) if isinstance(annotations, dict) else {},
    )


def server_config(server: MCPServer) -> dict[str, JsonValue]:
    """The definition as agent SDKs take it; placeholders stay placeholders."""
    if server.remote is None:
        env = cast("JsonValue", _texts(server.env, server))
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": env}
    kind = "sse" if isinstance(server.remote, SseTransport) else "http"
    headers = cast("JsonValue", _texts(server.remote.headers, server))
    return {"type": kind, "url": server.remote.url, "headers": headers}


def _texts(values: Mapping[str, object], server: MCPServer) -> dict[str, str]:
    return {name: _text(name, value, server) for name, value in values.items() if value is not None}


def _text(name: str, value: object, server: MCPServer) -> str:
    if isinstance(value, SecretRef) and value.provider == "env":
        return f"${{{value.name}}}"
    if isinstance(value, str):
        return value
    message = f"server '{server.name}': '{name}' is a secret and is not written into a configuration"
    raise InvalidServer(message, hint="refer to a variable, as in ${TOKEN}, or bridge the server")
