"""Is anybody there? The smallest request of each era, for a server that is tried again by itself after its rest."""

from __future__ import annotations

from contextlib import suppress

from outfitter.catalog import TimeLimits
from outfitter.errors import UpstreamError
from outfitter.upstream.eras import Era, routing_headers, stamp
from outfitter.upstream.link import Link

_SECONDS = 10.0
_DISCOVER = "server/discover"


async def greet(link: Link) -> None:
    """Wait for a sign of life, which an error of the protocol is too; raises when there is none."""
    limits, agreed = TimeLimits.of(_SECONDS), link.agreement
    with suppress(UpstreamError):
        if agreed.era is Era.LEGACY:
            await link.request("ping", limits=limits)
            return
        params = stamp({}, link.identity, agreed.version)
        headers = routing_headers(_DISCOVER, params, agreed.version)
        await link.request(_DISCOVER, params, limits=limits, headers=headers)
