"""Whom a wire over HTTP asks for credentials, however they are got: by the client credentials of ``oauth``, or else.

An authorizer is shared by everyone who signs in the same way, and may be asked from any task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from outfitter.basics import Secret


class Authorizer(Protocol):
    """Who gets the credentials for a server. Both methods are bounded in time."""

    async def headers(self) -> Mapping[str, Secret]:
        """The headers to send now; NeedsAuth or UpstreamLost when there are none to be had."""
        ...

    async def challenged(self, status: int, challenge: str, sent: Mapping[str, Secret]) -> bool:
        """A request with the headers ``sent`` was refused, and not executed; True when there are better ones now."""
        ...
