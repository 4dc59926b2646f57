"""Everything a handler needs: the use cases, who may do what, and what the application lends.

The handlers are one file per resource; ``table`` says which request goes to which of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import anyio

from outfitter.coordinator.access.access import Access
from outfitter.coordinator.access.identity import Identity
from outfitter.coordinator.access.roles import Action
from outfitter.coordinator.coordinator import Coordinator
from outfitter.coordinator.probing import Probe, nobody_probes

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from outfitter.resolution import SeenServer
    from outfitter.storage import ApprovalStore, BudgetBook, PinDesk

_STREAMS = 200
_BEAT_SECONDS = 15.0


def _no_figures() -> str:
    return ""


def _no_description() -> bytes:
    return b"{}"


def _is_ready() -> tuple[int, str]:
    return 200, "ready"


def _nothing_seen(_key: str) -> SeenServer | None:
    return None


PassOn: TypeAlias = Callable[[str, str, str, Mapping[bytes, bytes], bytes], "ASGIApp | None"]
"""Holder, method, path, headers and body of a request: who answers it elsewhere, or None."""


@dataclass(slots=True)
class Seats:
    """How many listen to events now; there is room for so many."""

    most: int = _STREAMS
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Office:
    """What the API stands on."""

    coordinator: Coordinator
    access: Access
    metrics: Callable[[], str] = _no_figures
    """The figures of the service, as Prometheus reads them."""
    ready: Callable[[], tuple[int, str]] = _is_ready
    """Status and text of ``/ready``, as far as the application knows."""
    description: Callable[[], bytes] = _no_description
    """The OpenAPI text."""
    address: str = ""
    """Where the gateway is, such as ``https://tools.example``; empty: where the API was asked."""
    pass_on: PassOn | None = None
    """Where there are several processes: who has another one answer."""
    probe: Probe = nobody_probes
    """Connects a server, to see whether it answers."""
    approvals: ApprovalStore | None = None
    """Where calls wait for a person; None when nobody is asked here."""
    pins: PinDesk | None = None
    """What was approved of the servers' tools; None when nothing is kept here."""
    budgets: BudgetBook | None = None
    """What agents have used of their budgets; None when nothing is counted here."""
    recall: Callable[[str], SeenServer | None] = _nothing_seen
    """What a server last said of itself, by its key."""
    closing: anyio.Event = field(default_factory=anyio.Event)
    """Set when the service ends: streams end too."""
    free: frozenset[Action] = frozenset()
    """What may be done without saying who one is."""
    beat_seconds: float = _BEAT_SECONDS
    """How often a silent stream says that it is alive."""
    listeners: Seats = field(default_factory=Seats)
    reading: anyio.Lock = field(default_factory=anyio.Lock)
    """The audit database is used by one thread at a time."""

    def allow(self, who: Identity | None, action: Action, agent: str | None) -> None:
        """Refuse somebody who may not do it for this agent: Forbidden."""
        if who is not None:
            self.access.need(who, action, agent=agent)
