"""Who asks, and whose history they may read. Pure.

A person reads everything. An agent reads its own history; the coordinator, a lead and the scribe read everybody's. Who
is not of the team reads no history. All the rest is for everybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from outfitter.squad.team import Member

AGENT_HEADER = "x-outfitter-agent"
"""The header that says, over HTTP, which agent asks."""
_READS_ALL = frozenset({"coordinator", "lead", "scribe", "session logger"})
"""Roles, in lower case. A scribe's role is written ``Session Logger`` in squad's own teams."""
_SEVERAL = re.compile(r"[/,&+|]| and ")
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whoever asks: an agent by its name, or a person."""

    agent: str | None = None


PERSON = Viewer()


def member_of(viewer: Viewer, members: Iterable[Member]) -> Member | None:
    """Who of the team asks: by id, else by the name or the role if exactly one has it; None for a stranger."""
    if not viewer.agent:
        return None
    found = list(members)
    ways = (
        [member for member in found if member.id == viewer.agent],
        [member for member in found if _plain(member.id) == _plain(viewer.agent)],
        [member for member in found if _plain(viewer.agent) in {_plain(member.name), _plain(member.role)}],
    )
    return next((those[0] for those in ways if len(those) == 1), None)


def readable(viewer: Viewer, members: Iterable[Member]) -> frozenset[str]:
    """The ids of those whose history the viewer may read."""
    found = list(members)
    if viewer.agent is None:
        return frozenset(member.id for member in found)
    asking = member_of(viewer, found)
    if asking is None:
        return frozenset()
    return frozenset(member.id for member in found if reads_all(asking) or member.id == asking.id)


def reads_all(member: Member) -> bool:
    """Whether a member's work is to know what all the others did."""
    roles = {part.strip().casefold() for part in _SEVERAL.split(member.role)}
    return member.kind == "coordinator" or not roles.isdisjoint(_READS_ALL)


def _plain(text: str) -> str:
    """A name as configuration files write it: ``Backend Dev`` is ``backend-dev``; what has no letters is itself."""
    return _NOT_IN_NAME.sub("-", text.casefold()).strip("-") or text
