"""Do the headers of a call say what its arguments say? A modern client repeats some, for whoever routes by them."""

from __future__ import annotations

from outfitter.gateway import modern
from outfitter.gateway.asked import Asked, Next
from outfitter.upstream import Message


async def agree(asked: Asked, go_on: Next) -> Message:
    """Refuse a call whose ``Mcp-Param-…`` headers contradict it."""
    if asked.item is not None and asked.headers is not None:
        modern.check_parameters(asked.item.shown.get("inputSchema"), asked.arguments, asked.headers)
    return await go_on(asked)
