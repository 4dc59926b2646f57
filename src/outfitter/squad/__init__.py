"""Teams: ``.squad`` folders read, the team's state as an MCP server, presets for roles, patterns for servers."""

from __future__ import annotations

from outfitter.squad.team import (
    AgentStatus,
    Backlog,
    BacklogItem,
    Decision,
    Found,
    HistoryEntry,
    Member,
    Metrics,
    TeamState,
    Told,
    Usage,
)

__all__ = [
    "AgentStatus",
    "Backlog",
    "BacklogItem",
    "Decision",
    "Found",
    "HistoryEntry",
    "Member",
    "Metrics",
    "TeamState",
    "Told",
    "Usage",
]
