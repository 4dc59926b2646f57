"""What governs the calls of every agent beside its plan: each a port with a do-nothing default, kept by ``storage``."""

from __future__ import annotations

from dataclasses import dataclass

from outfitter.gateway.approvals import NOBODY, Approvals
from outfitter.gateway.budgets import UNCOUNTED, Accounts
from outfitter.gateway.kept import NO_SHELF, Shelf
from outfitter.gateway.last_seen import FORGETFUL, LastSeen
from outfitter.gateway.pins import UNPINNED, Pins


@dataclass(frozen=True, slots=True)
class Governing:
    """Who is asked beside the plan, in the order in which a call meets them."""

    pins: Pins = UNPINNED
    approvals: Approvals = NOBODY
    accounts: Accounts = UNCOUNTED
    last_seen: LastSeen = FORGETFUL
    shelf: Shelf = NO_SHELF


UNGOVERNED = Governing()
