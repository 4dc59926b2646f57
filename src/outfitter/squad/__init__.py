"""Teams: ``.squad`` folders read, the team's state as an MCP server, presets for roles, patterns for servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.squad.access import Access, Kind, kind_of
from outfitter.squad.adding import Added, add_to_catalog, add_to_squad, find_pattern
from outfitter.squad.backlog import BacklogSource
from outfitter.squad.backlog_live import McpBacklog, TrackerServer, backlog_target, find_tracker
from outfitter.squad.folder_place import SquadPlace, find_squad
from outfitter.squad.patterns import EVERYBODY, Pattern, Share, patterns
from outfitter.squad.presets import NO_PRESET, PRESETS, Preset, apply_preset, apply_presets, fit_server, preset_for
from outfitter.squad.reader import SquadFolder
from outfitter.squad.search import Index
from outfitter.squad.server.viewers import AGENT_HEADER, PERSON, Viewer, member_of
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

if TYPE_CHECKING:
    from outfitter.squad.server.notices import Caps
    from outfitter.squad.server.serving import TeamPlace, open_team_app, serve_stdio, serving_team

__all__ = [
    "AGENT_HEADER",
    "EVERYBODY",
    "NO_PRESET",
    "PERSON",
    "PRESETS",
    "Access",
    "Added",
    "AgentStatus",
    "Backlog",
    "BacklogItem",
    "BacklogSource",
    "Caps",
    "Decision",
    "Found",
    "HistoryEntry",
    "Index",
    "Kind",
    "McpBacklog",
    "Member",
    "Metrics",
    "Pattern",
    "Preset",
    "Share",
    "SquadFolder",
    "SquadPlace",
    "TeamPlace",
    "TeamState",
    "Told",
    "TrackerServer",
    "Usage",
    "Viewer",
    "add_to_catalog",
    "add_to_squad",
    "apply_preset",
    "apply_presets",
    "backlog_target",
    "find_pattern",
    "find_squad",
    "find_tracker",
    "fit_server",
    "kind_of",
    "member_of",
    "open_team_app",
    "patterns",
    "preset_for",
    "serve_stdio",
    "serving_team",
]
_SERVER = {"Caps": "notices", "TeamPlace": "serving"} | dict.fromkeys(
    ("open_team_app", "serve_stdio", "serving_team"), "serving"
)


def __getattr__(name: str) -> object:
    """Load the server, which needs the MCP SDK, on first use."""
    if name not in _SERVER:
        raise AttributeError(f"module 'outfitter.squad' has no attribute '{name}'")
    from importlib import import_module

    try:
        value: object = getattr(import_module(f"outfitter.squad.server.{_SERVER[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        from outfitter.errors import Unavailable

        message = "the library 'mcp' is not installed, which serves the team's state"
        raise Unavailable(message, hint="pip install 'outfitter[squad]'") from None
    globals()[name] = value
    return value
