"""The call itself: to the server's own name of the tool, on an armed line. A server that fails is told to the model."""

from __future__ import annotations

from outfitter.errors import OutfitterError, UpstreamError
from outfitter.gateway.asked import OUTCOME, Asked, Next
from outfitter.gateway.faults import Rejected
from outfitter.gateway.forwarding import Forwarding
from outfitter.gateway.outages import outage_result
from outfitter.gateway.views import as_object
from outfitter.upstream import Message


async def send(asked: Asked, _go_on: Next) -> Message:
    """Forward the call. The server's own errors pass as they are; an outage becomes a result that says so."""
    if asked.item is None:
        raise TypeError("a call is sent after its tool is found")
    params = {**asked.params, "name": asked.item.name}
    try:
        return _without_outcome(await Forwarding(asked.item.line, asked.visitor, "tools/call", params).send())
    except (UpstreamError, Rejected):
        raise
    except OutfitterError as error:
        return outage_result(asked.view, asked.item.alias, error)


def _without_outcome(result: Message) -> Message:
    """The server's result without words that only the gateway says: what is recorded must not be a server's claim."""
    meta = as_object(result.get("_meta"))
    if OUTCOME not in meta:
        return result
    return {**result, "_meta": {key: value for key, value in meta.items() if key != OUTCOME}}
