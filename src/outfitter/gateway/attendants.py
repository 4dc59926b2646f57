"""Who stands by a request that is forwarded: carries questions to the client, and what the server says meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from outfitter.errors import UpstreamError
from outfitter.gateway.faults import Rejected
from outfitter.gateway.views import as_object
from outfitter.gateway.visitors import Visitor
from outfitter.upstream import STREAM_CLOSED, Era, Message

_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@runtime_checkable
class Pausing(Protocol):
    """A channel whose client can come back for the answer."""

    def pause(self) -> None:
        """Let the client go for now."""
        ...


@dataclass(slots=True)
class Forwarder:
    """Stands by for a client: progress, logs and questions go to it."""

    visitor: Visitor
    progress_token: object = None
    _asked: int = field(default=0, init=False)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client can answer."""
        return self.visitor.capabilities

    async def respond(self, method: str, params: Message) -> Message:
        """The client's answer."""
        try:
            return await self.visitor.channel.ask(method, params)
        except Rejected as refusal:
            raise UpstreamError(refusal.message, rpc_code=refusal.rpc_code, data=refusal.data) from None

    def hear(self, message: Message) -> None:
        """Pass a log message on, if the client wants its level; a server that lets us go lets the client go."""
        channel = self.visitor.channel
        if message.get("method") == STREAM_CLOSED:
            if isinstance(channel, Pausing):
                channel.pause()
        elif wants(self.visitor, as_object(message.get("params")).get("level")):
            channel.tell(message)

    def progress(self, params: Message) -> None:
        """Pass progress on under the token that the client gave."""
        if self.progress_token is not None:
            told = {**params, "progressToken": self.progress_token}
            self.visitor.channel.tell({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})


def wants(visitor: Visitor, level: object) -> bool:
    """Whether the client asked for log messages of this level: by request in the modern era, by session before."""
    if visitor.log_level is None:
        return visitor.era is Era.LEGACY
    if level not in _LEVELS or visitor.log_level not in _LEVELS:
        return True
    return _LEVELS.index(str(level)) >= _LEVELS.index(visitor.log_level)
