"""What a handler is given besides its arguments: the session, resources by their type, the time that is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from outfitter.policy import Approve, ToolPolicy
from outfitter.session import Session
from outfitter.tools.limits import BudgetTracker, Deadline

T = TypeVar("T")
D = TypeVar("D")
OnProgress = Callable[[float, float | None, str], None]


@dataclass(frozen=True, slots=True)
class ResourceRegistry:
    """Things that handlers share, each found by its type: a connection pool, a file system, a client."""

    entries: Mapping[type, object] = field(default_factory=dict[type, object])

    @classmethod
    def of(cls, *resources: object) -> ResourceRegistry:
        """The registry of these things, each under its own type."""
        return cls({type(resource): resource for resource in resources})

    @overload
    def get(self, kind: type[T]) -> T | None: ...
    @overload
    def get(self, kind: type[T], default: D) -> T | D: ...
    def get(self, kind: type[Any], default: object = None) -> object:
        """The resource of this type; the default when there is none."""
        return self.entries.get(kind, default)

    def merged(self, other: Mapping[type, object]) -> ResourceRegistry:
        """The registry with more entries; the new ones win."""
        return ResourceRegistry({**self.entries, **other}) if other else self


def _no_progress(_progress: float, _total: float | None, _message: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The surroundings of calls: one for a whole prompt, given to each handler with the id of its call."""

    session: Session = field(default_factory=Session)
    resources: ResourceRegistry = field(default_factory=ResourceRegistry)
    deadline: Deadline | None = None
    policies: tuple[ToolPolicy, ...] = ()
    budget: BudgetTracker | None = None
    adapter: str = "outfitter"
    call_id: str = ""
    report: OnProgress = _no_progress
    """Tell whoever asked how far the call is: done, total (None if unknown), a word about it."""
    approver: Approve | None = field(default=None, repr=False)
    """Who is asked about calls that a policy asks about; by default the session's approver."""
    approval_wait: float = 120.0
    """The seconds that a call waits for a person; never beyond its deadline."""
    begun_as: str = field(default="", repr=False)
    """The id of the call this context was handed to; calls that its handler makes get ids of their own."""

    def for_call(self, call_id: str, deadline: Deadline | None) -> ToolContext:
        """The surroundings of one call, as its handler gets them."""
        return ToolContext(
            self.session,
            self.resources,
            deadline,
            self.policies,
            self.budget,
            self.adapter,
            call_id,
            self.report,
            self.approver,
            self.approval_wait,
            call_id,
        )
