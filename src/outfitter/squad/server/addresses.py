"""What the URIs of the squad server mean: ``squad://roster``, ``squad://agents/{name}/history`` and the others. Pure.

A URI is read strictly before anybody is asked: a segment that could lead elsewhere (dots, slashes, controls, bytes that
are no UTF-8, spelt out or escaped) is refused here. A name that is left is only ever compared with the roster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from outfitter.errors import Invalid, NotFound

TeamKind: TypeAlias = Literal["roster", "decisions", "latest", "backlog", "agents", "metrics"]
AgentKind: TypeAlias = Literal["status", "history"]
TEAM: Mapping[str, TeamKind] = {
    "squad://roster": "roster",
    "squad://decisions": "decisions",
    "squad://decisions/latest": "latest",
    "squad://backlog": "backlog",
    "squad://agents": "agents",
    "squad://metrics": "metrics",
}
TEMPLATES: Mapping[str, AgentKind] = {
    "squad://agents/{name}/status": "status",
    "squad://agents/{name}/history": "history",
}
_KINDS: Mapping[str, AgentKind] = {"status": "status", "history": "history"}
_SCHEME = "squad://"
_LONGEST_URI, _LONGEST_NAME = 1024, 128
_WRITTEN = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+", re.ASCII)
"""A segment as RFC 3986 has it: nothing that would end the path, and every escape whole."""


@dataclass(frozen=True, slots=True)
class OfTeam:
    """Something about everybody."""

    kind: TeamKind


@dataclass(frozen=True, slots=True)
class OfAgent:
    """Something about one agent; whether there is such an agent is not known here."""

    kind: AgentKind
    agent: str


Address: TypeAlias = OfTeam | OfAgent


def read_address(uri: str) -> Address:
    """What a URI asks for; Invalid for one that is not written as ours are, NotFound for one that leads nowhere."""
    if len(uri) > _LONGEST_URI or not uri.startswith(_SCHEME):
        raise Invalid("this is no URI of this server", hint="they begin with squad:// and are listed")
    segments = [_segment(written) for written in uri.removeprefix(_SCHEME).split("/")]
    team = TEAM.get(uri)
    if team is not None:
        return OfTeam(team)
    if len(segments) == 3 and segments[0] == "agents" and segments[2] in _KINDS:  # noqa: PLR2004 - agents, name, kind
        return OfAgent(_KINDS[segments[2]], segments[1])
    raise unknown()


def _segment(written: str) -> str:
    try:
        text = unquote_to_bytes(written).decode("utf-8") if _WRITTEN.fullmatch(written) else ""
    except UnicodeDecodeError:
        text = ""
    if not is_name(text):
        raise Invalid("a segment of this URI is no name", hint="names are listed by squad://agents")
    return text


def is_name(text: str) -> bool:
    """Whether this can be an agent's name in a URI: printable, no path, not too long."""
    return (
        0 < len(text) <= _LONGEST_NAME
        and text.isprintable()
        and text not in {".", ".."}
        and not any(mark in text for mark in "/\\")
    )


def unknown() -> NotFound:
    """The one answer to all that is not there, and to all that is not for the one who asks."""
    return NotFound("there is no such resource", hint="resources/list has those there are")


def agent_uri(kind: AgentKind, agent: str) -> str:
    """The URI of something about an agent."""
    return f"{_SCHEME}agents/{quote(agent, safe='')}/{kind}"
