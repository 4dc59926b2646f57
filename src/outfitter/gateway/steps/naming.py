"""Which tool is meant. One that the agent does not have is answered exactly like one that does not exist.

One that it would have, and that waits for a person, is answered with that. While a server cannot be asked for its
tools, every name that may be one of them is answered with that. An agent that searches its tools calls them through one
that stands for all: what is judged and recorded is the tool that is meant.
"""

from __future__ import annotations

from outfitter.calls import CALL_TOOL, DESCRIBE_TOOL, META_NAMES, SEARCH_TOOLS
from outfitter.gateway.asked import Asked, Next, told
from outfitter.gateway.faults import INVALID_PARAMS, Rejected
from outfitter.gateway.outages import missing_server, outage_result
from outfitter.gateway.pins import CODE
from outfitter.gateway.searching import describe, invalid, is_searched, look_up, search
from outfitter.gateway.views import Item, Listing
from outfitter.policy import Held
from outfitter.upstream import Message


async def find_tool(asked: Asked, go_on: Next) -> Message:
    """Find the tool in the agent's own list; everything else is unknown."""
    given = asked.params.get("name")
    if not isinstance(given, str):
        raise Rejected("tools/call needs a name", rpc_code=INVALID_PARAMS, status=400)
    if not isinstance(asked.params.get("arguments", {}), dict):
        raise Rejected("the arguments must be an object", rpc_code=INVALID_PARAMS, status=400)
    if await is_searched(asked.view, asked.visitor):
        return await _find_searched(asked, go_on)
    listing = await asked.view.listing("tools/list", asked.visitor)
    asked.item = listing.items.get(given)
    return await go_on(asked) if asked.item is not None else _without(asked, listing, given)


async def _find_searched(asked: Asked, go_on: Next) -> Message:
    """The same where tools are searched: only the server of the tool that is meant is asked."""
    used = name = asked.name
    given = asked.arguments
    if used == SEARCH_TOOLS:
        return await search(asked)
    if used in META_NAMES:
        name = given.get("name")
        if not isinstance(name, str) or not isinstance(given.get("arguments", {}), dict):
            return invalid("'name' must be a text, and 'arguments' an object")
    listing, missing = await look_up(asked.view, asked.visitor, name)
    if used == CALL_TOOL:
        # The client has repeated nothing of these arguments in headers: it knows one tool that takes any.
        asked.params, asked.headers = {**asked.params, "name": name, "arguments": given.get("arguments", {})}, None
    if missing is not None:
        asked.missing = missing[0]
        return outage_result(asked.view, *missing)
    item = listing.items.get(name)
    if item is None:
        return _without(asked, listing, name)
    if used == DESCRIBE_TOOL:
        return describe(item)
    asked.item = item
    return await go_on(asked)


def _without(asked: Asked, listing: Listing, given: str) -> Message:
    """What is answered about a name that the agent has no tool under."""
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
