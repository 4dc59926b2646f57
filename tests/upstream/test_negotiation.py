"""Which era it is, when the first question is answered late."""

from __future__ import annotations

from typing import Any

import pytest

from outfitter.errors import UpstreamError, UpstreamTimeout
from outfitter.upstream import Era, negotiate

pytestmark = pytest.mark.anyio
SLOW = UpstreamTimeout("no answer to server/discover within 10.0 s")
REFUSED = UpstreamError("connection is serving the 2026-07-28 protocol", rpc_code=-32600)
MODERN: dict[str, Any] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}


class Server:
    """A server that says these things when it is asked which versions it speaks, one after the other."""

    def __init__(self, *said: dict[str, Any] | Exception, handshake: dict[str, Any] | Exception = REFUSED) -> None:
        self.said = list(said)
        self.handshake = handshake

    async def discover(self, _version: str) -> dict[str, Any]:
        return _given(self.said.pop(0))

    async def initialize(self) -> dict[str, Any]:
        return _given(self.handshake)


def _given(answer: dict[str, Any] | Exception) -> dict[str, Any]:
    if isinstance(answer, Exception):
        raise answer
    return answer


@pytest.mark.promise("ERA-SLOW-START")
async def test_a_modern_server_that_was_slow_to_start_is_asked_again_when_it_refuses_the_handshake() -> None:
    server = Server(SLOW, MODERN)
    assert (await negotiate(server.discover, server.initialize)).era is Era.MODERN


@pytest.mark.promise("ERA-SLOW-START")
async def test_a_silent_server_of_the_handshake_era_is_asked_once() -> None:
    server = Server(SLOW, handshake={"protocolVersion": "2025-11-25"})
    assert (await negotiate(server.discover, server.initialize)).era is Era.LEGACY
    nobody = Server(SLOW, REFUSED)
    with pytest.raises(UpstreamError):
        await negotiate(nobody.discover, nobody.initialize)
