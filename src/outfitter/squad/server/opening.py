"""How a client on stdin may begin: in either era, and with the handshake after it gave up on ``server/discover``.

The SDK settles the era by the first request. A client asks ``server/discover`` first, waits a few seconds, and begins
the handshake when no answer came, because the server was slow to start. The answer comes late, and the SDK would refuse
the handshake. So as long as nothing but ``server/discover`` was asked, a handshake begins anew.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest

Message: TypeAlias = SessionMessage | Exception
_FIRST, _HANDSHAKE = "server/discover", "initialize"


async def serve_on_stdio(server: Server[Any]) -> None:
    """Answer on stdin and stdout until stdin ends."""
    first: Message | None = None
    async with stdio_server() as (incoming, outgoing), outgoing:
        while True:
            send, receive = anyio.create_memory_object_stream[Message]()
            async with anyio.create_task_group() as group:
                group.start_soon(server.run, receive, outgoing.clone(), server.create_initialization_options())
                first = await _pass_on(incoming, send, first)
            if first is None:
                return


async def _pass_on(incoming: Any, send: MemoryObjectSendStream[Message], first: Message | None) -> Message | None:  # noqa: ANN401 - a type that the SDK does not show
    """Hand messages on until they end: None; or until a handshake must begin anew: the message that begins it."""
    has_discovered, is_settled = False, first is not None
    async with send:
        if first is not None:
            await send.send(first)
        async for message in incoming:
            method = _request_in(message)
            if not is_settled and method is not None:
                if method == _HANDSHAKE and has_discovered:
                    return message
                has_discovered, is_settled = True, method != _FIRST
            await send.send(message)
    return None


def _request_in(message: Message) -> str | None:
    """The method, if the message is a request."""
    if isinstance(message, SessionMessage) and isinstance(message.message, JSONRPCRequest):
        return message.message.method
    return None
