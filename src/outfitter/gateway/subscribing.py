"""Which resources of a server are watched, and for how many: one subscription per resource and line, in either era.

A handshake-era server is asked to tell of changes and told when nobody wants to hear of them any more; a modern one
has a lasting ``subscriptions/listen``. A subscription outlives a link that is lost: it is made again on the next one,
and the resource is told as changed, because it may have. Who hears of a change is ``listening``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from outfitter.catalog import TimeLimits
from outfitter.errors import OutfitterError, UpstreamError
from outfitter.gateway.lines import Line
from outfitter.gateway.views import as_object
from outfitter.upstream import Era, Link, Message

UPDATED = "notifications/resources/updated"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_ALL_DAY = TimeLimits.of(call=24 * 3600.0)
_LOOK_SECONDS = 1.0
_READY_SECONDS = 10.0
_TELL_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class _Held:
    """One subscription: its task holds it until the scope is cancelled."""

    line: Line
    uri: str
    holders: int = 0
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    settled: anyio.Event = field(default_factory=anyio.Event)
    refusal: OutfitterError | None = None

    async def hold(self) -> None:
        """Subscribe, and again whenever the link is another one."""
        with self.scope:
            while True:
                try:
                    await self.line.use(self._on_link)
                except UpstreamError as refusal:
                    self.refusal = refusal
                    break
                except OutfitterError as error:
                    self.refusal = error
                    if not self.settled.is_set():
                        break
                await anyio.sleep(_LOOK_SECONDS)
        self.settled.set()

    def _begin(self) -> None:
        """The server has agreed; after a gap the resource may have changed."""
        if self.settled.is_set():
            self.line.hear({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": self.uri}})
        self.settled.set()

    async def _on_link(self, link: Link) -> None:
        if link.agreement.era is Era.MODERN:
            await self._listen(link)
        else:
            await self._ask(link)

    async def _listen(self, link: Link) -> None:
        self.line.listeners.add(self._hear)
        try:
            wanted: Message = {"notifications": {"resourceSubscriptions": [self.uri]}}
            await link.request("subscriptions/listen", wanted, limits=_ALL_DAY)
        finally:
            self.line.listeners.discard(self._hear)

    def _hear(self, message: Message) -> None:
        if message.get("method") == _ACKNOWLEDGED:
            granted = as_object(as_object(message.get("params")).get("notifications"))
            if self.uri in (granted.get("resourceSubscriptions") or ()):
                self._begin()

    async def _ask(self, link: Link) -> None:
        await link.request("resources/subscribe", {"uri": self.uri})
        self._begin()
        visit = link.session_id
        try:
            while link.is_usable and link.session_id == visit:
                with anyio.move_on_after(_LOOK_SECONDS):
                    await link.wait_lost()
        finally:
            if link.is_usable and link.session_id == visit:
                with anyio.move_on_after(_TELL_SECONDS, shield=True):
                    await self._withdraw(link)

    async def _withdraw(self, link: Link) -> None:
        try:
            await link.request("resources/unsubscribe", {"uri": self.uri})
        except OutfitterError:
            return


@dataclass(slots=True)
class Subscriptions:
    """The subscriptions of a gateway; their tasks belong to it, not to a request."""

    tasks: TaskGroup
    _held: dict[tuple[int, str], _Held] = field(default_factory=dict[tuple[int, str], _Held])

    async def add(self, line: Line, uri: str) -> None:
        """Be told of a resource's changes on the line; raises why the server refuses."""
        key = (id(line), uri)
        held = self._held.get(key)
        if held is None or held.refusal is not None:
            held = self._held[key] = _Held(line, uri)
            self.tasks.start_soon(held.hold)
        held.holders += 1
        with anyio.move_on_after(_READY_SECONDS):
            await held.settled.wait()
        if held.refusal is not None:
            self.drop(line, uri)
            raise held.refusal

    def drop(self, line: Line, uri: str) -> None:
        """One holder less; the last one ends the subscription."""
        held = self._held.get((id(line), uri))
        if held is None:
            return
        held.holders -= 1
        if held.holders <= 0:
            del self._held[id(line), uri]
            held.scope.cancel()

    def drop_all(self, held: Mapping[str, Line]) -> None:
        """One holder less for each of these resources."""
        for uri, line in held.items():
            self.drop(line, uri)
