"""An agent's endpoint at an Outfitter gateway, and the servers of a prompt as they are reached through it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from outfitter.basics import Secret
from outfitter.catalog import MCPServer, StreamableHttpTransport

WHOLE = "gateway"
"""Under which name everything at the endpoint is offered when no server is declared."""


@dataclass(frozen=True, slots=True)
class GatewayRoute:
    """An agent's endpoint, such as ``http://127.0.0.1:8700/mcp/reviewer``, and the agent's token, if it needs one."""

    url: str
    token: str | None = field(default=None, repr=False)

    def through(self, servers: Iterable[MCPServer]) -> tuple[MCPServer, ...]:
        """The servers under their own names at the gateway; what is told of programs, hosts and headers is not used."""
        declared = tuple(servers)
        if not declared:
            return (MCPServer(WHOLE, self._endpoint(self.url)),)
        return tuple(
            replace(
                server, transport=self._endpoint(f"{self.url.rstrip('/')}/{server.name}"), env={}, args_factory=None
            )
            for server in declared
        )

    def _endpoint(self, url: str) -> StreamableHttpTransport:
        if self.token is None:
            return StreamableHttpTransport(url, {})
        return StreamableHttpTransport(url, {"Authorization": Secret(f"Bearer {self.token}")})
