"""What a team can be asked about itself: the words of the squad room, and the one port that its server stands on.

There are two who answer: ``reader`` for a ``.squad`` folder, and the registry's own state where there is no such
folder. Every answer carries notes on what could not be read, so that a broken file is told and never raised.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
MemberKind: TypeAlias = Literal["coordinator", "member", "coding_agent"]
DateSource: TypeAlias = Literal["heading", "field", "file_name", "git", "file_time"]


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """An answer, and what is to be known about it: what was missing, unreadable or left out."""

    value: T
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody of the team. ``id`` is what stands in ``squad://agents/{name}``."""

    id: str
    name: str
    role: str = ""
    status: str = ""
    """One word in lower case: active, silent, monitor, retired; empty when nobody says."""
    kind: MemberKind = "member"
    charter: str = ""
    """Where the charter is, relative to the folder; empty without one."""
    expertise: str = ""
    model: str = ""
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. A pending one waits in the inbox."""

    id: str
    title: str
    text: str = field(repr=False)
    author: str = ""
    date: str = ""
    """ISO 8601, a day or a moment; empty when nothing tells it."""
    dated_by: DateSource | None = None
    is_pending: bool = False
    is_archived: bool = False
    source: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A decision that a search found, best first; in each snippet what matched stands between ** and **."""

    decision: Decision
    score: float
    snippets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """Something that an agent has learned or done."""

    section: str
    title: str
    text: str = field(repr=False)
    date: str = ""


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """How an agent does, and what says so."""

    id: str
    status: str
    last_task: str = ""
    last_outcome: str = ""
    last_seen: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class BacklogItem:
    """Something to be done."""

    id: str
    title: str
    state: str = "open"
    assignee: str = ""
    labels: tuple[str, ...] = ()
    url: str = ""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is to be done, and who was asked: ``github``, ``azure-devops``, ``files``, ``registry``."""

    source: str
    items: tuple[BacklogItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What one agent has used."""

    agent: str
    tasks: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """US dollars, as far as they were told."""
    calls: int = 0
    failed_calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Metrics:
    """What the team has used, by agent; ``since`` is the earliest thing that was counted."""

    usage: tuple[Usage, ...] = ()
    since: str = ""
    source: str = ""


class TeamState(Protocol):
    """Whoever can say how a team is. Reads only. ``NotFound`` for an agent that is not of the team."""

    @property
    def name(self) -> str:
        """What the team is called."""
        ...

    async def roster(self) -> Told[tuple[Member, ...]]:
        """Everybody of the team who is not retired: coordinator, members, coding agents."""
        ...

    async def decisions(self, limit: int | None = None) -> Told[tuple[Decision, ...]]:
        """The decisions, newest first, those without a date last; pending ones are marked."""
        ...

    async def search(self, query: str, limit: int = 10) -> Told[tuple[Found, ...]]:
        """The decisions, archived ones too, in which these words stand, best first."""
        ...

    async def backlog(self) -> Told[Backlog]:
        """What is to be done."""
        ...

    async def status(self, agent: str) -> Told[AgentStatus]:
        """How an agent does."""
        ...

    async def history(self, agent: str, limit: int = 100) -> Told[tuple[HistoryEntry, ...]]:
        """What an agent has learned and done, newest first."""
        ...

    async def metrics(self) -> Told[Metrics]:
        """What the team has used."""
        ...

    def changes(self) -> AsyncGenerator[Sequence[str]]:
        """The URIs (``squad://...``) of which something may have changed, whenever it has, until it is closed."""
        ...
