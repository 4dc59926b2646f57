"""Which answers may be others when a file has changed? Keys of files in, URIs of the team's server out."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ROSTER = ("squad://roster", "squad://agents")
_DECISIONS = ("squad://decisions", "squad://decisions/latest")
_HISTORY = re.compile(r"agents/([^/]+)/history\.md")
_ENTRY = re.compile(r"orchestration-log/[\dTZ:.+-]*-(.+)\.md")


def follow(keys: Iterable[str]) -> tuple[str, ...]:
    """The URIs that these files stand behind, sorted. A status is named by the agent's id in lower case."""
    return tuple(sorted({uri for key in keys for uri in _uris(key)}))


def _uris(key: str) -> tuple[str, ...]:
    history = _HISTORY.fullmatch(key)
    if history:
        return (f"squad://agents/{history[1].lower()}/history",)
    if key.startswith("decisions"):
        return _DECISIONS
    if key.startswith(("identity/", "triage/")):
        return ("squad://backlog",)
    if key.startswith("orchestration-log/"):
        entry = _ENTRY.fullmatch(key)
        return ("squad://metrics", *((f"squad://agents/{entry[1].lower()}/status",) if entry else ()))
    agent = key.split("/")[1].lower() if key.startswith("agents/") else ""
    return (*_ROSTER, *((f"squad://agents/{agent}/status",) if agent else ()))
