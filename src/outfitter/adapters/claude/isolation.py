"""What an evaluation is kept from: the host's variables and files, the network, other programs.

``confine`` holds for every stdio server, whoever starts it. What cannot be kept is an error, never less than was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from outfitter.catalog import MCPServer
from outfitter.errors import CommandForbidden, Invalid


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """Which hosts may be reached, such as ``api.github.com`` or ``*.github.com``; none when none is named."""

    allowed_domains: tuple[str, ...] = ()

    @classmethod
    def with_domains(cls, *domains: str) -> NetworkPolicy:
        """Only these."""
        return cls(domains)

    @classmethod
    def no_network(cls) -> NetworkPolicy:
        """None at all."""
        return cls()

    def allows(self, host: str) -> bool:
        """Whether this host may be reached."""
        return any(
            host == domain or (domain.startswith("*.") and host.endswith(domain[1:])) for domain in self.allowed_domains
        )


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """Whether programs are shut in: Claude Code's own commands by its sandbox, stdio servers by bubblewrap."""

    enabled: bool = True


@dataclass(frozen=True, slots=True)
class IsolationConfig:
    """How an evaluation is kept apart. Without a word it has an empty HOME and none of the host's other variables."""

    network_policy: NetworkPolicy | None = None
    sandbox: SandboxConfig = field(default_factory=lambda: SandboxConfig(enabled=False))
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables of Claude Code and of every stdio server; what a server declares itself wins."""
    home: Path | None = None
    """A HOME of yours, where Claude Code finds your login; without one it is empty and removed at the end."""
    include_host_env: bool = False
    """Whether Claude Code gets every variable of this process."""

    def confine(self, server: MCPServer) -> MCPServer:
        """The server held in these bounds; an error when that cannot be done."""
        if server.remote is not None:
            self._check_host(server)
            return server
        domains = () if self.network_policy is None else self.network_policy.allowed_domains
        if domains:
            message = f"the network of the stdio server '{server.name}' cannot be limited to domains"
            hint = "NetworkPolicy.no_network() shuts it in; or put a remote server in its place"
            raise Invalid(message, where="IsolationConfig.network_policy", hint=hint)
        is_shut = self.sandbox.enabled or self.network_policy is not None
        sandbox = "isolated" if is_shut else server.sandbox
        return replace(server, env={**self.env, **server.env}, sandbox=sandbox)

    def _check_host(self, server: MCPServer) -> None:
        host = urlsplit(server.url or "").hostname or ""
        if self.network_policy is not None and not self.network_policy.allows(host):
            message = f"the network policy does not allow the host of server '{server.name}'"
            raise CommandForbidden(message, hint="name it in NetworkPolicy.with_domains(…)")

    def settings(self) -> dict[str, Any] | None:
        """Claude Code's sandbox for the commands it runs itself; None when there is none."""
        if not self.sandbox.enabled and self.network_policy is None:
            return None
        domains = [] if self.network_policy is None else list(self.network_policy.allowed_domains)
        network = {} if self.network_policy is None else {"network": {"allowedDomains": domains}}
        # Without the last word Claude Code runs commands unsandboxed where the system cannot shut them in.
        return {"enabled": True, "allowUnsandboxedCommands": False, "failIfUnavailable": True, **network}
