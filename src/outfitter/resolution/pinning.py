"""Under which name the pins of a planned server are kept, and what to type about a tool that waits."""

from __future__ import annotations

from outfitter.policy import Held, Why
from outfitter.resolution.plan import PlannedServer


def pin_key(planned: PlannedServer, agent: str) -> str:
    """The name of the server's entry. A server that an agent has of its own is the agent's: others share the alias."""
    return planned.entry_id or f"{agent}.{planned.alias}"


def approval_of(key: str, held: Held) -> str:
    """The command that lets in what is held back, or shows what there is to decide."""
    if held.why is Why.LATE:
        return f"outfitter squad approve-tools {key} {held.name}"
    return f"outfitter pins diff {key} {held.name}".rstrip()
