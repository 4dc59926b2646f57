"""Which tool is meant. One that the agent does not have is answered exactly like one that does not exist.

One that it would have, and that waits for a person, is answered with that. While a server cannot be asked for its
tools, every name that may be one of them is answered with that.
"""

from __future__ import annotations

from outfitter.gateway.asked import Asked, Next, told
from outfitter.gateway.faults import INVALID_PARAMS, Rejected
from outfitter.gateway.outages import missing_server, outage_result
from outfitter.gateway.pins import CODE
from outfitter.gateway.views import Item
from outfitter.policy import Held
from outfitter.upstream import Message


async def find_tool(asked: Asked, go_on: Next) -> Message:
    """Find the tool in the agent's own list; everything else is unknown."""
    given = asked.params.get("name")
    if not isinstance(given, str):
        raise Rejected("tools/call needs a name", rpc_code=INVALID_PARAMS, status=400)
    if not isinstance(asked.params.get("arguments", {}), dict):
        raise Rejected("the arguments must be an object", rpc_code=INVALID_PARAMS, status=400)
    listing = await asked.view.listing("tools/list", asked.visitor)
    asked.item = listing.items.get(given)
    if asked.item is not None:
        return await go_on(asked)
    if given in listing.held:
        asked.item, held = listing.held[given]
        return _held_back(given, asked.item, held)
    missing = missing_server(asked.view, asked.visitor, listing, given)
    if missing is None:
        raise Rejected(f"Unknown tool: {given}", rpc_code=INVALID_PARAMS)
    asked.missing, why = missing
    if isinstance(why, Rejected):
        raise why
    return outage_result(asked.view, asked.missing, why)


def _held_back(shown: str, item: Item, held: Held) -> Message:
    """A result that the model can read: what waits, why, and that it need not try again."""
    text = (
        f"'{shown}' is held back: {held.reason}. A person must approve it before it can be used; "
        "do not try again, and go on without it."
    )
    return told(text, code=CODE, server=item.alias, tool=item.name, reason=held.why.value)
