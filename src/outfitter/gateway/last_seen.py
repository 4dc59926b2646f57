"""What servers last said of themselves: kept whenever a list is made, so that tools can be found without starting one.

Where it is kept is ``storage``. What was seen is a memory, not a promise: a tool that is described or called is looked
up at its server first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from outfitter.gateway.lines import Line
from outfitter.resolution import PlannedServer, SeenServer, seen_key
from outfitter.upstream import Message


class LastSeen(Protocol):
    """Who remembers servers, by the key of ``resolution.seen_key``."""

    def recall(self, key: str) -> SeenServer | None:
        """What was last seen; the same object as long as nothing changed; None when nothing is known."""
        ...

    def keep(self, key: str, seen: SeenServer) -> None:
        """Remember what was seen."""
        ...


@dataclass(frozen=True, slots=True)
class _Forgetful:
    """Nothing is remembered: a server is asked once by each process."""

    def recall(self, key: str) -> SeenServer | None:
        """None."""
        del key
        return None

    def keep(self, key: str, seen: SeenServer) -> None:
        """Nothing."""
        del key, seen


FORGETFUL: LastSeen = _Forgetful()


def note_seen(last_seen: LastSeen, planned: PlannedServer, agent: str, line: Line, tools: tuple[Message, ...]) -> None:
    """Keep what a server has just said of itself."""
    agreed = line.connection.agreement
    if agreed is not None and last_seen is not FORGETFUL:
        last_seen.keep(seen_key(planned, agent), SeenServer(tools, agreed.capabilities, agreed.instructions))
