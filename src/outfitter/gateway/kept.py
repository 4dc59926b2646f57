"""Results that are kept aside for an agent: who keeps them, and what the agent sees of them.

An agent with a result limit has one more tool, which reads what was kept; the same can be read as a resource. Tools are
listed without their output schema then: a promise of structured content could not be kept for a result that is cut.
Keeping is the step ``keeping``, reading the step ``reading``; the files are ``storage``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qs

from outfitter.calls import READER, READER_TOOL, SCHEME, cut
from outfitter.gateway.seats import Seat
from outfitter.upstream import Message

OWN = "outfitter"
"""What stands in the place of a server where the gateway itself answers."""
_LONGEST = 200
TEMPLATE: Message = {
    "uriTemplate": f"{SCHEME}{{id}}{{?from,bytes}}",
    "name": "kept-results",
    "title": "Kept results",
    "description": "A result that was too large to be shown whole; from and bytes choose a part of it.",
}


class Shelf(Protocol):
    """Who keeps results, for an agent and its run."""

    def put(self, owner: tuple[str, str], text: bytes, **about: str) -> str:
        """Keep a text; the id under which its owner finds it."""
        ...

    def read(self, owner: tuple[str, str], ident: str) -> tuple[bytes, str] | None:
        """A kept text and its type; None when there is none for this owner."""
        ...


@dataclass(frozen=True, slots=True)
class _NoShelf:
    """Nothing is kept, so nothing is cut."""

    def put(self, owner: tuple[str, str], text: bytes, **about: str) -> str:
        """Nowhere."""
        raise TypeError(f"there is no shelf for {len(text)} bytes of {owner[0]}, {about}")

    def read(self, owner: tuple[str, str], ident: str) -> None:
        """None."""
        del owner, ident


NO_SHELF: Shelf = _NoShelf()


def limit_of(seat: Seat, shelf: Shelf) -> int | None:
    """The bytes above which a result of this agent is kept aside; None when none is."""
    return None if shelf is NO_SHELF else seat.plan.agent.result_limit


def owner_of(seat: Seat) -> tuple[str, str]:
    """Whose results they are: the agent's, or those of the run that it works in."""
    return seat.agent, (seat.plan.run_id or "") if seat.run else ""


def with_own(method: str, shown: Sequence[Message]) -> list[Message]:
    """A list with what the gateway itself has to offer for kept results; its own tool stands for any of its name."""
    if method == "tools/list":
        return [*(one for one in shown if one.get("name") != READER), dict(READER_TOOL)]
    return [*shown, TEMPLATE] if method == "resources/templates/list" else list(shown)


def ident_of(handle: str) -> str:
    """The id that a handle names, with the scheme or without."""
    return handle.removeprefix(SCHEME).partition("?")[0][:_LONGEST]


def read_kept(uri: str, seat: Seat, shelf: Shelf) -> Message | None:
    """A kept result as a resource, or the part of it that the address asks for; None when there is none."""
    found = shelf.read(owner_of(seat), ident_of(uri))
    query = parse_qs(uri.partition("?")[2])
    try:
        start = int(query.get("from", ["0"])[0])
        length = int(query["bytes"][0]) if "bytes" in query else None
    except ValueError:
        return None
    if found is None:
        return None
    text, kind = found
    piece = cut(text, start, len(text) if length is None else length)
    return {"contents": [{"uri": uri, "mimeType": kind, "text": piece.text}]}
