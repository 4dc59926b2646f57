"""Visits, which the handshake era calls sessions: who came, what it can do, and the stream it hears news on.

A visit proves nothing: it is found only together with the token and endpoint it was made for. Visits are few and end by
themselves. What a visit's streams say is kept for a client that comes back for it, bounded.
"""

from __future__ import annotations

import itertools
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from outfitter.gateway.faults import METHOD_NOT_FOUND, Rejected
from outfitter.gateway.lines import Line
from outfitter.gateway.views import as_object
from outfitter.gateway.visitors import Channel, Principal, Visitor
from outfitter.gateway.words import Replay
from outfitter.upstream import Era, Message

IDLE_SECONDS = 1800.0
MOST_VISITS = 10_000
MOST_PER_TOKEN = 1000
_ASK_SECONDS = 300.0
_MOST_STREAMS = 16


@dataclass(slots=True, eq=False)
class Visit:
    """One client of the handshake era."""

    id: str
    principal: Principal
    server: str | None
    version: str
    capabilities: Mapping[str, Any]
    declares: str
    log_level: str | None = None
    last_used: float = 0.0
    subscribed: dict[str, Line] = field(default_factory=dict[str, Line])
    """The resources it wants to hear of, and where they are."""
    _asked: dict[object, tuple[anyio.Event, list[Message]]] = field(
        default_factory=dict[object, "tuple[anyio.Event, list[Message]]"]
    )
    _scopes: dict[object, anyio.CancelScope] = field(default_factory=dict[object, anyio.CancelScope])
    _streams: OrderedDict[int, Replay] = field(default_factory=OrderedDict[int, Replay])
    _standing: Replay | None = None
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def visitor(self, channel: Channel) -> Visitor:
        """The client in one request."""
        return Visitor(
            self.principal, Era.LEGACY, self.version, channel, self.capabilities, self.log_level, self.declares
        )

    def tell(self, message: Message) -> None:
        """Say something on the standing stream; lost when there is none."""
        if self._standing is not None:
            self._standing.say(message)

    def listen(self) -> Replay:
        """The standing stream; a new one takes the place of the last."""
        self.close()
        self._standing = self.record()
        return self._standing

    @property
    def standing(self) -> Replay | None:
        """The standing stream, if there is one."""
        return self._standing

    def record(self) -> Replay:
        """A new stream that can be taken up again; the oldest that have ended are forgotten."""
        ended = [number for number, stream in self._streams.items() if stream.is_closed]
        for number in ended[: max(0, len(self._streams) - _MOST_STREAMS + 1)]:
            del self._streams[number]
        stream = Replay(next(self._numbers))
        self._streams[stream.number] = stream
        return stream

    def resume(self, event_id: str) -> tuple[Replay, int] | None:
        """The stream that an event belongs to, and the event's place in it; None when it is not kept here."""
        number, _, place = event_id.partition("-")
        if not (number.isdecimal() and place.isdecimal()) or int(number) not in self._streams:
            return None
        return self._streams[int(number)], int(place)

    async def ask(self, method: str, params: Message, say: Callable[[Message], None] | None = None) -> Message:
        """The client's answer to a question; Rejected when it refuses or is silent."""
        ident = f"outfitter-{secrets.token_hex(8)}"
        event, answers = anyio.Event(), list[Message]()
        self._asked[ident] = (event, answers)
        try:
            (say or self.tell)({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
            with anyio.move_on_after(_ASK_SECONDS):
                await event.wait()
        finally:
            del self._asked[ident]
        if not answers:
            raise Rejected(f"the client did not answer {method}", rpc_code=METHOD_NOT_FOUND)
        return _result(answers[0])

    def take(self, response: Message) -> bool:
        """Deliver the client's response to whoever asked; False when nobody did."""
        waiting = self._asked.get(response.get("id"))
        if waiting is None:
            return False
        waiting[1].append(response)
        waiting[0].set()
        return True

    @contextmanager
    def working_on(self, ident: object, scope: anyio.CancelScope) -> Generator[None]:
        """While the block lasts, the client can cancel what it asked by its id."""
        self._scopes[ident] = scope
        try:
            yield
        finally:
            self._scopes.pop(ident, None)

    def hear(self, notification: Message) -> None:
        """Take a notification of the client: a cancelled request is given up."""
        if notification.get("method") == "notifications/cancelled":
            scope = self._scopes.get(as_object(notification.get("params")).get("requestId"))
            if scope is not None:
                scope.cancel()

    def wants(self, notification: Message) -> bool:
        """Whether it is about a resource that the client subscribed to."""
        is_update = notification.get("method") == "notifications/resources/updated"
        return is_update and as_object(notification.get("params")).get("uri") in self.subscribed

    def close(self) -> None:
        """End the standing stream."""
        if self._standing is not None:
            self._standing.close()
            self._standing = None

    def end(self) -> None:
        """End every stream, and what is being worked on."""
        self.close()
        for stream in self._streams.values():
            stream.scope.cancel()
            stream.close()
        for scope in tuple(self._scopes.values()):
            scope.cancel()


def _result(response: Message) -> Message:
    if "error" in response:
        error = as_object(response["error"])
        code = error.get("code")
        told = str(error.get("message", "the client refused"))
        raise Rejected(told, rpc_code=code if isinstance(code, int) else METHOD_NOT_FOUND)
    return as_object(response.get("result"))


@dataclass(slots=True)
class VisitBook:
    """The visits of a gateway, oldest use first."""

    on_end: Callable[[Visit], None] | None = None
    """Told of every visit that ends."""
    mark: str = ""
    """What every id begins with: it says which worker has the visit."""
    _visits: OrderedDict[str, Visit] = field(default_factory=OrderedDict[str, Visit])

    def open(self, principal: Principal, server: str | None, version: str, capabilities: Mapping[str, Any]) -> Visit:
        """A new visit; what was not used for long goes."""
        self._sweep()
        mine = [one.id for one in self._visits.values() if one.principal.token_id == principal.token_id]
        if len(mine) >= MOST_PER_TOKEN:
            self.end(mine[0])
        visit = Visit(
            self.mark + secrets.token_urlsafe(24), principal, server, version, capabilities,
            "legacy " + json.dumps(capabilities, sort_keys=True), last_used=time.monotonic(),
        )  # fmt: skip
        self._visits[visit.id] = visit
        return visit

    def find(self, visit_id: str, principal: Principal, server: str | None) -> Visit | None:
        """The visit, for the one it was made for; None otherwise."""
        visit = self._visits.get(visit_id)
        if visit is None or visit.principal != principal or visit.server != server:
            return None
        visit.last_used = time.monotonic()
        self._visits.move_to_end(visit_id)
        return visit

    def end(self, visit_id: str) -> None:
        """Forget a visit."""
        visit = self._visits.pop(visit_id, None)
        if visit is not None:
            visit.end()
            if self.on_end is not None:
                self.on_end(visit)

    def all(self) -> tuple[Visit, ...]:
        """Every visit."""
        return tuple(self._visits.values())

    def _sweep(self) -> None:
        limit = time.monotonic() - IDLE_SECONDS
        while self._visits:
            oldest = next(iter(self._visits.values()))
            if oldest.last_used >= limit and len(self._visits) < MOST_VISITS:
                return
            self.end(oldest.id)
