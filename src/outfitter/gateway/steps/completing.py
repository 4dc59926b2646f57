"""Arguments as they are sent: with the defaults of the agent's overrides, and none that the agent does not have.

Rules judge what is sent, so this stands before them; headers repeat what the client gave, so it stands after those.
"""

from __future__ import annotations

from outfitter.catalog import complete_arguments, hidden_given, rewrites
from outfitter.gateway.asked import Asked, Next, told
from outfitter.upstream import Message


async def complete(asked: Asked, go_on: Next) -> Message:
    """Fill in what the plan says; refuse what it hides as if there were no such argument."""
    override = None if asked.item is None else asked.item.override
    if override is None or not rewrites(override):
        return await go_on(asked)
    given = hidden_given(asked.arguments, override)
    if given:
        return told(f"'{asked.name}' has no argument '{given[0]}'", code="unknown_argument")
    asked.params = {**asked.params, "arguments": complete_arguments(asked.arguments, override)}
    return await go_on(asked)
