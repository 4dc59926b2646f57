"""A wire to a server of the official SDK inside this process, over the SDK's own in-memory streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from outfitter.errors import OutfitterError
from outfitter.resolution import ArmedServer
from outfitter.upstream import Inbox, Message, Wire

_NO_HEADERS: Mapping[str, str] = {}


@dataclass(slots=True)
class MemoryWire:
    """See ``Wire``; nothing is ever lost here."""

    write: Any
    _waiting: dict[object, tuple[anyio.Event, list[Message]]] = field(
        default_factory=dict[object, "tuple[anyio.Event, list[Message]]"]
    )

    async def ask(self, message: Message, headers: Mapping[str, str] = _NO_HEADERS) -> Message:
        """The response to a request."""
        del headers
        event, answers = anyio.Event(), list[Message]()
        self._waiting[message["id"]] = (event, answers)
        try:
            await self.tell(message)
            await event.wait()
        finally:
            del self._waiting[message["id"]]
        return answers[0]

    async def tell(self, message: Message, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        """Hand a message over."""
        del headers
        kind = JSONRPCRequest if "id" in message else JSONRPCNotification
        await self.write.send(SessionMessage(kind(**message)))

    @property
    def lost(self) -> OutfitterError | None:
        """Never."""
        return None

    async def wait_lost(self) -> OutfitterError:
        """Forever."""
        while True:
            await anyio.sleep_forever()

    async def read(self, stream: Any) -> None:  # noqa: ANN401 - the SDK's stream
        """Deliver what the server says."""
        async for item in stream:
            said = item.message
            waiting = self._waiting.get(getattr(said, "id", None))
            if waiting is not None:
                waiting[1].append(_plain(said))
                waiting[0].set()


def _plain(said: object) -> Message:
    if isinstance(said, JSONRPCResponse):
        return {"id": said.id, "result": said.result}
    return {"error": said.error.model_dump(mode="json")} if isinstance(said, JSONRPCError) else {}


def to_server(server: Server[Any]) -> Callable[[ArmedServer, Inbox], AbstractAsyncContextManager[Wire]]:
    """Opens wires to this server."""

    @asynccontextmanager
    async def open_wire(armed: ArmedServer, inbox: Inbox) -> AsyncGenerator[Wire]:
        del armed, inbox
        async with create_client_server_memory_streams() as (ours, theirs), anyio.create_task_group() as group:
            group.start_soon(server.run, *theirs, server.create_initialization_options())
            wire = MemoryWire(ours[1])
            group.start_soon(wire.read, ours[0])
            yield wire
            group.cancel_scope.cancel()

    return open_wire
