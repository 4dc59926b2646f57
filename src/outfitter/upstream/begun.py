"""A request that was sent before anyone here asked it: whoever asks it now waits for its answer instead of sending.

A fast sender that meets something unusual hands its request over this way, so that one code path judges everything
unusual and nothing is sent twice. What was begun belongs to one context and is taken once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, cast

from outfitter.upstream.wire import Message, Wire


class Adopting(Protocol):
    """A wire that can wait for the answer to what others sent on it."""

    async def ask(self, message: Message, headers: Mapping[str, str], sent: Awaitable[Any]) -> Message:
        """The response message, read from what ``sent`` gives."""
        ...


@dataclass(slots=True, eq=False)
class Begun:
    """One request under way. ``answer`` gives what the wire reads: an HTTP response, or a message of a pipe."""

    link: object
    """The link it was sent on."""
    request_id: int
    started: float
    """When it was sent, by the clock of the loop."""
    answer: Awaitable[Any]
    is_taken: bool = False

    async def finish(self, wire: Wire, message: Message, headers: Mapping[str, str]) -> Message:
        """The response message."""
        return await cast("Adopting", wire).ask(message, headers, self.answer)


BEGUN: ContextVar[Begun | None] = ContextVar("BEGUN", default=None)


def take_begun(link: object) -> Begun | None:
    """What was begun on this link in this context; once."""
    begun = BEGUN.get()
    if begun is None or begun.is_taken or begun.link is not link:
        return None
    begun.is_taken = True
    return begun
