"""How Copilot's program is set up for one evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from outfitter.adapters.gateway import GatewayRoute
from outfitter.adapters.loop import DEFAULT_ROUNDS
from outfitter.adapters.servers import check_fitting
from outfitter.bridge import McpConnectionPool
from outfitter.catalog import ALL_TOOLS, MCPServer, ToolFilter
from outfitter.errors import Invalid

Route: TypeAlias = Literal["bridge", "native", "gateway", "ignore"]
ROUTES = ("bridge", "native", "gateway", "ignore")
Hook: TypeAlias = Callable[[Any, Any], Any]
NAME = "copilot"
_WHERE = "CopilotClientConfig"


@dataclass(frozen=True, slots=True)
class CopilotAgent:
    """A custom agent of Copilot with servers of its own, which only it sees; the main agent calls it as a task."""

    name: str
    prompt: str
    description: str = ""
    mcp_servers: Sequence[MCPServer] = ()
    tools: ToolFilter = ALL_TOOLS
    """Which tools it sees, of its own servers and of the others, by the names that the model is shown."""
    model: str | None = None


@dataclass(frozen=True, slots=True)
class CopilotClientConfig:
    """What the program is given. Without a ``provider`` it asks GitHub, as whoever is logged in."""

    provider: Mapping[str, Any] | None = field(default=None, repr=False)
    """A model provider of yours as the SDK writes it: ``{"type": "openai", "base_url": …, "api_key": …}``."""
    cli_path: Path | str | None = None
    """The program, as npm's ``@github/copilot`` brings it; without one, COPILOT_CLI_PATH."""
    env: Mapping[str, str] | None = field(default=None, repr=False)
    """All of its variables; without a word a few of this process, none of which is a secret but GitHub's own."""
    mcp_servers: Sequence[MCPServer] = ()
    """Connected besides those of the prompt, before them, and winning over them."""
    gateway: GatewayRoute | None = None
    agents: Sequence[CopilotAgent] = ()
    agent: str | None = None
    """Which of the agents has the main part; without one it is Copilot's own."""
    hooks: Mapping[str, Hook] = field(default_factory=dict[str, Hook], repr=False)
    """Hooks of yours by the SDK's names. One before a call can only forbid it, and forbids it when it fails."""
    cwd: Path | None = None
    """Its working folder; without one it is empty and removed at the end."""
    home: Path | None = None
    """Where it keeps its sessions; without one it is removed at the end, unless it asks GitHub."""
    pool: McpConnectionPool | None = field(default=None, repr=False)
    """For the route ``bridge``: where connections are shared; without one, each evaluation has its own."""
    description_limit: int | None = None
    max_rounds: int = DEFAULT_ROUNDS
    start_seconds: float = 60.0
    """How long the program, and the servers it connects, are waited for."""
    timeout: float = 1800.0
    """Seconds for the whole evaluation, where no deadline is given."""

    def check(self, route: str) -> None:
        """Refuse what cannot be done."""
        if route not in ROUTES:
            raise Invalid(f"no route '{route}'", where="CopilotAdapter", hint=f"one of {', '.join(ROUTES)}")
        if (route == "gateway") != (self.gateway is not None):
            message = "route='gateway' and gateway=GatewayRoute(url, token) belong together"
            raise Invalid(message, where=_WHERE, hint="give both, or neither")
        if route != "bridge" and self.pool is not None:
            raise Invalid("a pool is for route='bridge'", where=_WHERE, hint="take it out, or bridge the servers")
        check_fitting("ignore" if route == "ignore" else "bridge", self.mcp_servers, NAME)
        self._check_agents(route)

    def _check_agents(self, route: str) -> None:
        names = [agent.name for agent in self.agents]
        if len(set(names)) < len(names):
            raise Invalid("two agents have one name", where=_WHERE)
        if self.agent is not None and self.agent not in names:
            raise Invalid(f"no agent '{self.agent}'", where=_WHERE, hint=f"one of {', '.join(names) or 'none'}")
        for agent in self.agents:
            if agent.mcp_servers and route not in {"native", "gateway"}:
                # Tools of this process are shown to every agent.
                hint = "route='native' or route='gateway', or have them connected for every agent"
                raise Invalid(f"agent '{agent.name}' has servers of its own", where=_WHERE, hint=hint)
            check_fitting("bridge", agent.mcp_servers, f"{NAME}, agent {agent.name}")
