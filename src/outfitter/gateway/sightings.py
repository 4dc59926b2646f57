"""Tools that appear later under an exclude rule: hidden until somebody has looked at them.

An include rule names what an agent gets; an exclude rule gives everything that nobody thought of. So under one the
tools of a server's first listing are let in, and later ones wait. They are held back where the list is made, and a call
finds its tool in that list: nothing is asked a second time. Where sightings are kept is ``storage``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from outfitter.gateway.lines import Exchange
from outfitter.resolution import PlannedServer

_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class Sightings(Protocol):
    """Who remembers which tools a server has shown."""

    def sift(self, server: str, agent: str, listed: Collection[str], let_in: Collection[str]) -> Collection[str]:
        """Those of the tools that are let in which appeared later and wait; asked once for every list that is made."""
        ...


@dataclass(frozen=True, slots=True)
class _Unwatched:
    """Nothing is remembered, so nothing waits."""

    def sift(self, server: str, agent: str, listed: Collection[str], let_in: Collection[str]) -> Collection[str]:
        """None."""
        del server, agent, listed, let_in
        return ()


UNWATCHED: Sightings = _Unwatched()


def held_back(planned: PlannedServer, agent: str, listed: Sequence[str], sightings: Sightings) -> Collection[str]:
    """The tools that the gates let in only because nothing excludes them, and that appeared later."""
    if not any(gate.filter.exclude for gate in planned.gates):
        return ()
    named = {name for gate in planned.gates for name in gate.filter.include or ()}
    let_in = [tool for tool in dict.fromkeys(listed) if tool not in named and planned.allows(tool)]
    return sightings.sift(planned.id, agent, listed, let_in)


def look_again(exchange: Exchange, servers: Collection[str]) -> None:
    """Have the tools of these servers listed again, and every client told: somebody has approved some."""
    for line in exchange.lines():
        if line.connection.server.planned.id in servers:
            line.hear(_CHANGED)
