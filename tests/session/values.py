"""What the tests keep in sessions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A piece of state."""

    text: str


@dataclass(frozen=True, slots=True)
class Count:
    """Another one."""

    number: int


@dataclass(frozen=True, slots=True)
class Noted:
    """An event."""

    text: str
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class NotedTwice(Noted):
    """An event below another one."""
