"""Who answers what a server asks by itself: for a whole connection, or while one request is under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from outfitter.errors import UpstreamError
from outfitter.upstream.wire import Message

_METHOD_NOT_FOUND = -32601


class Peer(Protocol):
    """Whoever can answer what a server asks: elicitation, sampling, roots."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it can answer, as the protocol declares it."""
        ...

    async def respond(self, method: str, params: Message) -> Message:
        """The result for one request of the server; UpstreamError to refuse it."""
        ...


class Attendant(Peer, Protocol):
    """Who stands by one request: answers what the server asks during it, and hears what it says meanwhile."""

    def hear(self, message: Message) -> None:
        """Take a notification that belongs to the request; must not block."""
        ...


async def respond(peer: Peer | None, method: str, params: Message) -> Message:
    """The answer of a peer, or a polite no where there is none."""
    if method == "ping":
        return {}
    if peer is not None:
        return await peer.respond(method, params)
    if method == "elicitation/create":
        return {"action": "decline"}
    raise UpstreamError(f"nobody here answers {method}", rpc_code=_METHOD_NOT_FOUND)
