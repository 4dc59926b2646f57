"""Who asks: a name for the history, a role, and what narrows it."""

from __future__ import annotations

from dataclasses import dataclass

from outfitter.coordinator.access.roles import Role


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a token stands for. ``agent``, ``server`` and ``run_id`` narrow what it may be used for."""

    name: str
    """What the history of changes says: ``label#id`` of an API token, ``sub`` of an identity provider's."""
    role: Role
    agent: str | None = None
    server: str | None = None
    run_id: str | None = None
    token_id: str = ""
    """The id of the API token; empty for anyone else."""
    ends: float = float("inf")
    """When the token ends by itself; seconds since 1970."""


LOCAL = Identity("local", "editor")
"""Whoever comes without a token where none is needed. What needs an admin needs a token there too."""
