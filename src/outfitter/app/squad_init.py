"""A new squad file: who is of the team, which role each has, which servers it begins with. Values only.

Members of ``team.md`` become agents of the same name, held to the preset of their role. Servers come from the patterns
of ``squad``, with the routes that each recommends; a value of a variable is never asked for or written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outfitter.catalog import JsonValue

if TYPE_CHECKING:
    from outfitter.squad import Member

FIRST_SERVERS = ("github", "filesystem")
_WORDS = {
    "lead": ("lead", "architect", "coordinator", "manager"),
    "tester": ("test", "tester", "qa", "quality"),
    "designer": ("design", "designer", "ux", "visual"),
    "scribe": ("scribe", "logger", "documentation", "docs", "writer"),
    "frontend-dev": ("frontend", "front", "ui", "web"),
    "backend-dev": ("backend", "back", "server", "api", "database", "core", "developer", "engineer", "dev"),
}
"""Words of a role that make it one of those that there is a preset for; the first that fits counts."""


@dataclass(frozen=True, slots=True)
class NewSquad:
    """A squad file to be written, the variables that its servers need, and what there is to say about it."""

    document: dict[str, JsonValue]
    variables: Mapping[str, str]
    notes: tuple[str, ...]


def role_of(role: str) -> str | None:
    """The role with a preset that somebody's role means; None when it means none of them."""
    from outfitter.squad import preset_for

    preset = preset_for(role)
    if preset is not None:
        return preset.role
    words = set(re.findall(r"[a-z]+", role.lower()))
    return next((name for name, meant in _WORDS.items() if words & set(meant)), None)


def roles_of(members: Iterable[Member]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The agents of a roster with their roles, and notes about those who have none."""
    from outfitter.squad import NO_PRESET

    roles: dict[str, str] = {}
    notes: list[str] = []
    for member in members:
        if member.kind != "member":
            notes.append(f"{member.id} ({member.kind.replace('_', ' ')}) is left out: it has no endpoint of its own")
            continue
        found = role_of(member.role)
        roles[member.id] = found or NO_PRESET
        if found is None:
            notes.append(f"{member.id}: no preset for the role '{member.role}', so nothing holds it but its filters")
    return roles, tuple(notes)


def preset_roles() -> dict[str, str]:
    """An agent for every role of the table, by its name."""
    from outfitter.squad import PRESETS

    return {preset.role: preset.role for preset in PRESETS}


def new_squad(roles: Mapping[str, str], servers: Mapping[str, Sequence[str]]) -> NewSquad:
    """The file for these agents; ``servers`` has the agents that are to get each, none for the recommended ones."""
    from outfitter.squad import add_to_squad, find_pattern

    document: dict[str, JsonValue] = {
        "servers": {},
        "agentServers": {agent: [] for agent in roles},
        "toolRestrictions": {},
        "roles": dict(roles),
    }
    variables: dict[str, str] = {}
    notes: list[str] = []
    for name, agents in servers.items():
        pattern = find_pattern(name)
        document, added = add_to_squad(document, pattern, agents)
        variables |= pattern.variables
        notes += added.notes
    if not document["toolRestrictions"]:
        del document["toolRestrictions"]
    return NewSquad(document, variables, tuple(notes))
