"""What the coordinator's use cases take and answer, as values. Nothing here holds a sensitive literal.

Neighbours: ``entries``, ``runs`` and ``blueprints`` make these; ``api`` writes them as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from outfitter.storage import Action, Kind, RunState

MASK = "********"
"""What stands in the place of a sensitive literal. Sent back in a document, it means: keep what is stored there."""

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change. Only an admin may say which programs are started."""

    name: str
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """An entry as it may be seen: sensitive literals masked.

    ``approved`` says of a stdio server whether its command may be started; None for one that starts nothing.
    ``users`` is how many entries refer to it.
    """

    kind: Kind
    id: str
    document: Mapping[str, Any]
    version: int
    created_at: str
    updated_at: str
    updated_by: str
    approved: bool | None = None
    users: int = 0

    @property
    def etag(self) -> str:
        """The version as HTTP writes it; If-Match takes it back."""
        return f'"{self.version}"'


@dataclass(frozen=True, slots=True)
class Page(Generic[T_co]):
    """A part of a list; ``next_cursor`` asks for the next part, None when there is none."""

    items: tuple[T_co, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A document that is not stored yet. Its id is in it, or here when it leaves it out."""

    kind: Kind
    document: Mapping[str, Any] = field(repr=False)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class PastChange:
    """One change of an entry's history, sensitive literals masked."""

    seq: int
    revision: int
    at: str
    who: str
    action: Action
    kind: Kind
    id: str
    version: int
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run as it may be seen: sensitive header values masked, no credentials."""

    id: str
    type: str
    agent_name: str
    prompt: str
    session_id: str
    parent_session_id: str | None
    state: RunState
    created_at: str
    created_by: str
    started_at: str | None
    ended_at: str | None
    mcp_headers: Mapping[str, Any]
    result: Any
    error: Any
    owner: str | None = None
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class ShownSession:
    """A session: who started it, whom it started, and its plan explained when one session is asked for."""

    id: str
    agent: str
    run_id: str
    state: RunState
    created_at: str
    ended_at: str | None
    parent_id: str | None
    children: tuple[str, ...] = ()
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs or sessions are wanted."""

    agent: str | None = None
    state: RunState | None = None
    session_id: str | None = None
    oldest_first: bool = False
