"""Everything that exists, looked up by name. Loading it from files or a database happens in higher rooms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from outfitter.basics import quote, suggest
from outfitter.catalog.agents import Agent, Capability
from outfitter.catalog.entries import ServerEntry
from outfitter.errors import UnknownAgent, UnknownCapability, UnknownServer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Catalog:
    """The registry's servers, the capabilities and the agents."""

    servers: Mapping[str, ServerEntry] = field(default_factory=dict[str, ServerEntry])
    capabilities: Mapping[str, Capability] = field(default_factory=dict[str, Capability])
    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])

    @classmethod
    def of(
        cls, servers: Iterable[ServerEntry] = (), capabilities: Iterable[Capability] = (), agents: Iterable[Agent] = ()
    ) -> Catalog:
        """The catalog that holds these, keyed by their own names."""
        return cls({s.id: s for s in servers}, {c.name: c for c in capabilities}, {a.name: a for a in agents})

    def server(self, id_: str, *, where: str = "") -> ServerEntry:
        """The entry of this id, or UnknownServer."""
        found = self.servers.get(id_)
        if found is None:
            raise UnknownServer(
                f"no MCP server {quote(id_)} in the registry", where=where, hint=suggest(id_, self.servers)
            )
        return found

    def capability(self, name: str, *, where: str = "") -> Capability:
        """The capability of this name, or UnknownCapability."""
        found = self.capabilities.get(name)
        if found is None:
            raise UnknownCapability(f"no capability {quote(name)}", where=where, hint=suggest(name, self.capabilities))
        return found

    def agent(self, name: str, *, where: str = "") -> Agent:
        """The agent of this name, or UnknownAgent."""
        found = self.agents.get(name)
        if found is None:
            raise UnknownAgent(f"no agent {quote(name)}", where=where, hint=suggest(name, self.agents))
        return found

    def users_of(self, server_id: str) -> tuple[str, ...]:
        """Who refers to an entry: ``capability 'x'`` and ``agent 'y'``, in a stable order."""
        kinds = (("capability", self.capabilities.values()), ("agent", self.agents.values()))
        return tuple(
            f"{kind} '{item.name}'"
            for kind, items in kinds
            for item in sorted(items, key=lambda item: item.name)
            if any(getattr(use, "ref", None) == server_id for use in item.servers.values())
        )
