"""Which era a server speaks: asked once, by the newest way first.

``server/discover`` is tried; what is not a modern server's answer means the handshake. An outage is never a verdict:
errors of the wire pass through. Who has a client of the handshake era prefers that era, and takes the modern one from
a server that has no other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from outfitter.errors import ProtocolViolation, UpstreamError, UpstreamTimeout
from outfitter.upstream.eras import LEGACY_VERSIONS, MODERN_VERSIONS, Agreement, Era, Identity
from outfitter.upstream.wire import Message

UNSUPPORTED_VERSION = -32022
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
Discover = Callable[[str], Awaitable[Message]]
Initialize = Callable[[], Awaitable[Message]]


async def negotiate(
    discover: Discover, initialize: Initialize, known: Era | None = None, prefers: Era = Era.MODERN
) -> Agreement:
    """The agreement with a server; a known era is taken at its word and not probed."""
    if known is Era.LEGACY:
        return read_initialize(await initialize())
    if known is None and prefers is Era.LEGACY:
        try:
            return read_initialize(await initialize())
        except (UpstreamTimeout, ProtocolViolation, UpstreamError):
            return await negotiate(discover, initialize, Era.MODERN)
    version = MODERN_VERSIONS[-1]
    try:
        return await _discover(discover, version) or read_initialize(await initialize())
    except (UpstreamTimeout, ProtocolViolation) as silence:
        return await _shake_hands(silence, discover, initialize)
    except UpstreamError as error:
        return await _fall_back(error, discover, initialize)


async def _shake_hands(silence: Exception, discover: Discover, initialize: Initialize) -> Agreement:
    """The handshake; a modern server that was only slow to start has heard the question meanwhile, and refuses it."""
    try:
        return read_initialize(await initialize())
    except UpstreamError:
        found = await _discover(discover, MODERN_VERSIONS[-1]) if isinstance(silence, UpstreamTimeout) else None
        if found is None:
            raise
        return found


async def _discover(discover: Discover, version: str) -> Agreement | None:
    """What a modern server says of itself; None when the answer names no modern version."""
    result = await discover(version)
    offered = result.get("supportedVersions")
    if not isinstance(offered, list) or version not in offered:
        return None
    meta = result.get("_meta")
    info = cast("Message", meta).get(_SERVER_INFO) if isinstance(meta, dict) else None
    return _agreement(Era.MODERN, version, info, result)


async def _fall_back(error: UpstreamError, discover: Discover, initialize: Initialize) -> Agreement:
    """The handshake, unless the error itself shows a modern server that shares a version, or none at all, with us."""
    supported = _supported(error)
    if error.rpc_code == UNSUPPORTED_VERSION and supported:
        mutual = [version for version in MODERN_VERSIONS if version in supported]
        if mutual:
            found = await _discover(discover, mutual[-1])
            if found is not None:
                return found
        elif not any(version in supported for version in LEGACY_VERSIONS):
            raise ProtocolViolation(f"the server speaks only {', '.join(supported)}, and we speak none of these")
    return read_initialize(await initialize())


def _supported(error: UpstreamError) -> list[str]:
    data = error.data
    found: Any = cast("Message", data).get("supported") if isinstance(data, dict) else None
    return [str(version) for version in cast("list[object]", found)] if isinstance(found, list) else []


def read_initialize(result: Message) -> Agreement:
    """The agreement that an ``initialize`` answer makes."""
    version = result.get("protocolVersion")
    if version not in LEGACY_VERSIONS:
        raise ProtocolViolation(
            f"the server answered the handshake with version {str(version)[:40]!r}, which we do not speak"
        )
    return _agreement(Era.LEGACY, str(version), result.get("serverInfo"), result)


def _agreement(era: Era, version: str, info: object, result: Message) -> Agreement:
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return Agreement(
        era,
        version,
        cast("Message", info) if isinstance(info, dict) else {},
        cast("Message", capabilities) if isinstance(capabilities, dict) else {},
        instructions if isinstance(instructions, str) else "",
    )


def handshake(identity: Identity) -> Message:
    """The parameters of ``initialize``."""
    return {
        "protocolVersion": LEGACY_VERSIONS[-1],
        "capabilities": dict(identity.capabilities),
        "clientInfo": identity.info,
    }
