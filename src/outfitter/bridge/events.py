"""What a bridge tells its session besides the calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ToolListChanged:
    """A server has other tools than before; the names are those that a model sees."""

    server: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    """Tools of the same name with another description or schema."""
    session_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ToolHeldBack:
    """A tool is not offered, because it is not what somebody approved; the name is the server's own."""

    server: str
    tool: str
    why: str
    reason: str
    session_id: str | None
    created_at: datetime
