"""What the registry's database holds, as values: entries, changes, runs, sessions, tokens, events.

Nothing here knows a database. Times are texts in UTC, as ISO 8601 writes them, so that they sort as texts. No value
holds a credential of a run: those live in memory only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["mcp-servers", "capabilities", "agents"]
KINDS: tuple[Kind, ...] = ("mcp-servers", "capabilities", "agents")
Action = Literal["create", "update", "delete", "rollback", "approve"]
RunState = Literal["pending", "running", "stopping", "stopped", "done", "failed", "lost"]
ENDED: frozenset[RunState] = frozenset({"stopped", "done", "failed", "lost"})
NOTHING_SEALED: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored document of a kind, as it stands: its sealed literals are open here, ``sealed`` says where they are.

    ``approved`` is the digest of the approved command of a stdio server.
    """

    kind: Kind
    id: str
    document: Mapping[str, Any] = field(repr=False)
    version: int
    created_at: str
    updated_at: str
    updated_by: str
    approved: str | None = None
    sealed: frozenset[str] = NOTHING_SEALED

    @property
    def etag(self) -> str:
        """The version as HTTP writes it. A version of an id is never used twice, also not after a deletion."""
        return f'"{self.version}"'


@dataclass(frozen=True, slots=True)
class Put:
    """Store a document: ``sealed`` are the JSON pointers of the literals to encrypt.

    ``expected`` is the version it replaces; 0: it must not exist; None: whatever stands there. ``restores`` names the
    version whose document this is: the change is then a rollback. Of id, name and description 2000 bytes are searched.
    """

    kind: Kind
    id: str
    document: Mapping[str, Any] = field(repr=False)
    sealed: frozenset[str] = NOTHING_SEALED
    expected: int | None = None
    restores: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Take an entry away; ``expected`` as in Put."""

    kind: Kind
    id: str
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Who changed what, when, from what to what. Sealed literals stay sealed here: ``{"$sealed": "..."}``."""

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
class Past:
    """The document an entry had in an earlier version, opened: what a rollback puts back."""

    kind: Kind
    id: str
    version: int
    document: Mapping[str, Any] = field(repr=False)
    sealed: frozenset[str]


@dataclass(frozen=True, slots=True)
class User:
    """An entry that refers to another one."""

    kind: Kind
    id: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it was asked for and how it went. ``sealed`` are JSON pointers into ``mcp_headers``.

    ``seq`` is given by the database and is the cursor of lists. ``owner`` is the runner that executes it, ``attempt``
    how often it was begun, ``given`` what the runner said of itself then. ``holder`` is where its credentials are held.
    """

    id: str
    type: str
    agent_name: str
    prompt: str
    session_id: str
    created_at: str
    created_by: str
    mcp_headers: Mapping[str, Any] = field(repr=False)
    parent_session_id: str | None = None
    state: RunState = "pending"
    started_at: str | None = None
    ended_at: str | None = None
    result: Any = None
    error: Any = None
    sealed: frozenset[str] = NOTHING_SEALED
    seq: int = 0
    owner: str | None = None
    attempt: int = 0
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that a run told while it was executed; numbered from 1 in each run when it is stored."""

    type: str
    at: str
    data: Mapping[str, Any] = field(repr=False)
    seq: int = 0


@dataclass(frozen=True, slots=True)
class RunnerRecord:
    """A process that executes runs, as it described itself when it was last heard of."""

    id: str
    capacity: int
    running: tuple[str, ...] = ()
    executors: tuple[str, ...] = ()
    first_seen: str = ""
    last_seen: str = ""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What an agent works in: its resolved blank plan, with provenance, is what its children inherit from.

    ``sealed`` are JSON pointers into ``plan``; the pointer ``""`` seals all of it. The state follows the run's.
    """

    id: str
    agent: str
    run_id: str
    created_at: str
    plan: Mapping[str, Any] = field(repr=False)
    parent_id: str | None = None
    state: RunState = "pending"
    ended_at: str | None = None
    sealed: frozenset[str] = NOTHING_SEALED
    seq: int = 0


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """An API token: its digest, never the token. ``agent``, ``server`` and ``run_id`` narrow what it is good for."""

    id: str
    digest: str
    role: str
    created_at: str
    created_by: str
    label: str = ""
    agent: str | None = None
    server: str | None = None
    run_id: str | None = None
    expires_at: str | None = None
    revoked_at: str | None = None
    last_used_at: str | None = None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """Something that happened, numbered without gaps, for those who listen and for those who come back."""

    seq: int
    at: str
    kind: str
    subject: str
    data: Mapping[str, Any]
