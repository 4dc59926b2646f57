"""A request that was sent before anyone here asked it: whoever asks it now waits for its answer instead of sending.

A fast sender that meets something unusual hands its request over this way, so that one code path judges everything
unusual and nothing is sent twice. What was begun belongs to one context and is taken once, on the link it was sent on;
where that link is not in use any more, it is lost and not sent again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from outfitter.errors import UpstreamLost
from outfitter.upstream.wire import Message, Wire


class Adopting(Protocol):
    """A wire that can wait for the answer to what others sent on it."""

    async def ask(self, message: Message, headers: Mapping[str, str], sent: Awaitable[Any]) -> Message:
        """The response message, read from what ``sent`` gives."""
        ...


class Wired(Protocol):
    """Whatever speaks through a wire; None when it is closed."""

    @property
    def wire(self) -> Wire | None:
        """The wire."""
        ...


@dataclass(slots=True, eq=False)
class Begun:
    """One request under way. ``answer`` gives what the wire reads: an HTTP response, or a message of a pipe."""

    link: Wired
    """The link it was sent on."""
    request_id: int
    started: float
    """When it was sent, by the clock of the loop."""
    answer: Awaitable[Any]
    is_taken: bool = False
    _wire: Wire | None = field(init=False)

    def __post_init__(self) -> None:
        """Keep the wire: it knows why it was lost when the link has let go of it."""
        self._wire = self.link.wire

    async def ask(self, message: Message, headers: Mapping[str, str]) -> Message:
        """The response message; nothing is sent."""
        if self._wire is None:
            raise UpstreamLost("the link was closed", may_have_run=True)
        return await cast("Adopting", self._wire).ask(message, headers, self.answer)


BEGUN: ContextVar[Begun | None] = ContextVar("BEGUN", default=None)


def take_begun(link: Wired) -> Begun | None:
    """What was begun on this link in this context; once. UpstreamLost when it was begun on another one."""
    begun = BEGUN.get()
    if begun is None or begun.is_taken:
        return None
    begun.is_taken = True
    if begun.link is not link:
        raise UpstreamLost("the call was sent on a connection that is not used any more", may_have_run=True)
    return begun
