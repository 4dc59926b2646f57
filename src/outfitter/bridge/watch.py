"""Which servers said that their tools changed: heard on the loop of the connections, and passed on to be listed again.

What a changed list means is ``live``. One gate lets one change of state happen at a time. Servers that could not be
connected are tried again when it is time.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio

from outfitter.bridge.connection import McpConnection
from outfitter.bridge.home import Home
from outfitter.errors import OutfitterError
from outfitter.upstream import Message, loop_time

_log = logging.getLogger(__name__)
_CHANGED = "notifications/tools/list_changed"
Relist = Callable[[Sequence[str]], Awaitable[Sequence[OutfitterError]]]
Reconnect = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Watch:
    """Who listens: one task on the loop of the connections, until ``end`` or until their home is closed."""

    home: Home
    gate: anyio.Lock = field(default_factory=anyio.Lock)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    noticed: anyio.Event = field(default_factory=anyio.Event)
    names: set[str] = field(default_factory=set[str])
    stops: dict[str, Callable[[], None]] = field(default_factory=dict[str, Callable[[], None]])
    due: float = math.inf
    """When servers that are missing are tried again, by the clock of the loop."""

    def hear(self, name: str, message: Message) -> None:
        """Remember that the server's list is not the same any more."""
        if message.get("method") == _CHANGED:
            self.names.add(name)
            self.noticed.set()

    def listen(self, name: str, connection: McpConnection) -> None:
        """Hear of this server, once."""
        if name not in self.stops:
            self.stops[name] = connection.upstream.listen_to(partial(self.hear, name))

    def deafen(self, names: Iterable[str]) -> None:
        """Hear of these servers no more."""
        for name in tuple(names):
            self.stops.pop(name, _already)()

    def rest(self, seconds: float | None) -> None:
        """Have what is missing tried again after so many seconds; never, with None."""
        due = math.inf if seconds is None else loop_time() + seconds
        if due != self.due:
            self.due = due
            self.noticed.set()

    async def run(self, relist: Relist, reconnect: Reconnect) -> None:
        """Have whatever changed listed again, and what is missing tried, until the end; many notices become one."""
        with self.scope:
            while True:
                with anyio.move_on_after(max(0.0, self.due - loop_time())):
                    await self.noticed.wait()
                self.noticed = anyio.Event()
                names, self.names = sorted(self.names), set()
                try:
                    if loop_time() >= self.due:
                        await reconnect()
                    for error in await relist(names) if names else ():
                        _log.warning("a changed list of tools could not be read: %s", error)
                except Exception:  # noqa: BLE001 - one bad list must not end the loop that all connections live on
                    _log.exception("a changed list of tools could not be bridged")

    def end(self) -> None:
        """Stop listening, and end the task."""
        self.deafen(self.stops)
        self.scope.cancel()


def _already() -> None:
    """Nobody listens any more."""
