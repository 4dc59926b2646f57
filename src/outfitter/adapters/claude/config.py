"""How the Claude Agent SDK's client is set up for one evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from outfitter.adapters.claude.isolation import IsolationConfig
from outfitter.adapters.gateway import GatewayRoute
from outfitter.adapters.loop import DEFAULT_ROUNDS
from outfitter.adapters.servers import check_fitting
from outfitter.bridge import McpConnectionPool
from outfitter.catalog import MCPServer
from outfitter.errors import Invalid

Route: TypeAlias = Literal["bridge", "native", "gateway", "ignore"]
_ROUTES = ("bridge", "native", "gateway", "ignore")
_WHERE = "ClaudeAgentSDKClientConfig"


@dataclass(frozen=True, slots=True)
class ClaudeAgentSDKClientConfig:
    """What the client is given. ``route`` says who connects the MCP servers of the adapter and of the prompt.

    * ``bridge``: Outfitter, in this process. Claude Code sees one server, ``wink``, with every tool on it. The default:
      the one way in which a prompt has the same tools, names, checks and limits here as with every other adapter, and
      in which Claude Code learns no command, header or secret.
    * ``native``: Claude Code itself, as documents 1 and 2 have it. Its hooks keep every call on the one path of all
      calls (policies, events, transactions); arguments are checked by the server alone.
    * ``gateway``: Claude Code connects to an Outfitter gateway, which knows the servers by their names.
    * ``ignore``: nobody.
    """

    route: Route = "bridge"
    mcp_servers: Sequence[MCPServer] = ()
    """Connected besides those of the prompt, before them, and winning over them."""
    gateway: GatewayRoute | None = None
    isolation: IsolationConfig = field(default_factory=IsolationConfig)
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    max_retries: int | None = None
    """How often Claude Code repeats a request that the provider refused; None is its own number."""
    pool: McpConnectionPool | None = field(default=None, repr=False)
    """For ``bridge``: where connections are shared; without one, each evaluation has its own."""
    description_limit: int | None = None
    max_rounds: int = DEFAULT_ROUNDS
    system_prompt: str | None = None
    tools: Sequence[str] = ()
    """The built-in tools of Claude Code that may be used, such as ``Read``; calls of them are governed too."""
    cwd: Path | None = None
    """Its working folder; without one it is empty and removed at the end."""
    cli_path: Path | None = None
    """The program; without one it is the one that came with the SDK."""

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        if self.route not in _ROUTES:
            raise Invalid(f"no route '{self.route}'", where=_WHERE, hint=f"one of {', '.join(_ROUTES)}")
        if (self.route == "gateway") != (self.gateway is not None):
            message = "route='gateway' and gateway=GatewayRoute(url, token) belong together"
            raise Invalid(message, where=_WHERE, hint="give both, or neither")
        if self.route != "bridge" and self.pool is not None:
            raise Invalid("a pool is for route='bridge'", where=_WHERE, hint="take it out, or bridge the servers")
        check_fitting("ignore" if self.route == "ignore" else "bridge", self.mcp_servers, "claude")
