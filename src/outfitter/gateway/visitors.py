"""Who asks: an authenticated client, the era it speaks, and how things can be said to it while it waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from outfitter.gateway.faults import CAPABILITY_MISSING, Rejected
from outfitter.upstream import Era, Message


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a token stands for: one agent, and one endpoint of it when ``server`` is set."""

    agent: str
    token_id: str
    server: str | None = None
    run_id: str | None = None
    ends: float = float("inf")
    """When the token ends by itself; seconds since 1970."""


class Channel(Protocol):
    """What can be said to a client between its request and the answer."""

    def tell(self, message: Message) -> None:
        """Send a notification; must not block."""
        ...

    async def ask(self, method: str, params: Message) -> Message:
        """The client's answer to a question of a server; Rejected when it cannot be asked."""
        ...


@dataclass(frozen=True, slots=True)
class Visitor:
    """One client in one request."""

    principal: Principal
    era: Era
    version: str
    channel: Channel = field(repr=False)
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log_level: str | None = None
    declares: str = "{}"
    """The capabilities as one text: equal ones share a line."""

    def need(self, capability: str) -> None:
        """Refuse to ask what the client has not said that it can answer."""
        if capability not in self.capabilities:
            data: Message = {"requiredCapabilities": {capability: {}}}
            raise Rejected(f"the client cannot do '{capability}'", rpc_code=CAPABILITY_MISSING, status=400, data=data)
