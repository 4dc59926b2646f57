"""Where this machine remembers what the servers of one catalog said of themselves, and what that costs an agent.

What is kept and why is ``gateway.last_seen``; the files are ``storage.last_seen``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from outfitter.app.settings import Settings
from outfitter.resolution import RunPlan, SeenServer, seen_key

if TYPE_CHECKING:
    from outfitter.storage import LastSeenFolder
    from outfitter.upstream import Agreement, Message


def last_seen_of(settings: Settings) -> LastSeenFolder:
    """What was last seen of this catalog's servers; another catalog's servers of the same name are others."""
    from outfitter.storage import LastSeenFolder

    return LastSeenFolder(settings.of_catalog("last-seen"))


def note_live(settings: Settings, plan: RunPlan, alias: str, tools: Sequence[Message], agreed: Agreement) -> None:
    """Remember what a server has just said of itself."""
    seen = SeenServer(tuple(tools), agreed.capabilities, agreed.instructions)
    last_seen_of(settings).keep(seen_key(plan.servers[alias], plan.agent.name), seen)
