"""The call itself: to the server's own name of the tool, on an armed line. A server that fails is told to the model."""

from __future__ import annotations

from outfitter.errors import NeedsAuth, OutfitterError, UpstreamDown, UpstreamError, UpstreamTimeout
from outfitter.gateway.asked import OUTCOME, Asked, Next, told
from outfitter.gateway.faults import Rejected
from outfitter.gateway.forwarding import Forwarding
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
    except UpstreamTimeout as late:
        return told(f"'{asked.name}' did not answer in time: {late.message}", code=late.code)
    except UpstreamDown as down:
        text = f"'{asked.name}' is not available: {down.message}. It is tried again in {down.retry_after:.0f} s."
        return told(text, code=down.code, retryAfter=round(down.retry_after, 1))
    except NeedsAuth as refused:
        return told(f"'{asked.name}' is not available: its server wants other credentials.", code=refused.code)
    except OutfitterError as error:
        return told(f"'{asked.name}' failed: {error.message}", code=error.code)


def _without_outcome(result: Message) -> Message:
    """The server's result without words that only the gateway says: what is recorded must not be a server's claim."""
    meta = as_object(result.get("_meta"))
    if OUTCOME not in meta:
        return result
    return {**result, "_meta": {key: value for key, value in meta.items() if key != OUTCOME}}
