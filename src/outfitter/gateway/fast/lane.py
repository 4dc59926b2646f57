"""Which calls take the fast lane: the questions every call is asked, in the order of the full lane, all or nothing.

The same gate, tokens, visits, views, plans and links answer them. A call that fails any of them has not been touched
and goes to the full lane, which says what is wrong. What happens to a call that is taken is ``calls``.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import msgspec

from outfitter.errors import StorageUnavailable
from outfitter.gateway import modern
from outfitter.gateway.desk import Desk
from outfitter.gateway.fast.departures import Departures
from outfitter.gateway.fast.doors import Door, Doors, Headers
from outfitter.gateway.fast.endings import Endings
from outfitter.gateway.fast.envelopes import Envelope, read_call
from outfitter.gateway.fast.heads import Heads
from outfitter.gateway.fast.tickets import UNUSUAL, Key, Ticket, TicketBook, modern_meta
from outfitter.gateway.gate import Gate
from outfitter.gateway.visitors import Principal, Visitor
from outfitter.gateway.visits import Visit
from outfitter.policy import Allow, judge
from outfitter.upstream import Era, Message

_LONG_META = 2048
_MOST_METAS = 1024
_MOST_WAYS = 4096
_SPREAD, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


class Nobody:
    """A channel for looking things up: nothing is said through it."""

    def tell(self, message: Message) -> None:
        """Nothing."""

    async def ask(self, method: str, params: Message) -> Message:
        """Never asked."""
        del params
        raise TypeError(f"{method} was asked of nobody")


class Way(NamedTuple):
    """A request's head, understood: where it leads, the tool it names, in the header and in clear."""

    door: Door
    header: bytes | None
    named: str | None
    keep_alive: bool

    def headers(self, length: int) -> Generator[tuple[bytes, bytes]]:
        """What the full lane is given for a body of this length."""
        yield from self.door.headers
        if self.header is not None:
            yield b"mcp-name", self.header
        yield b"content-length", str(length).encode()


class Passage(NamedTuple):
    """A call that may take the fast lane, its link borrowed."""

    principal: Principal
    visit: Visit | None
    envelope: Envelope
    arguments: dict[str, Any]
    ticket: Ticket


@dataclass(slots=True, eq=False)
class Lane:
    """The fast lane of one gateway."""

    desk: Desk
    gate: Gate
    doors: Doors = field(init=False)
    tickets: TicketBook = field(init=False)
    ways: Heads[Way] = field(default_factory=lambda: Heads[Way](_MOST_WAYS))
    taken: int = 0
    """How many calls took it."""
    handed: int = 0
    """How many of them went on in the full lane."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    departures: Departures = field(default_factory=Departures)
    endings: Endings = field(init=False)
    under_way: int = 0
    """How many calls are in it now."""
    _metas: dict[bytes, tuple[Message, Visitor]] = field(default_factory=dict[bytes, tuple[Message, Visitor]])
    _nobody: Nobody = field(default_factory=Nobody)
    _mark: bytes = field(default_factory=lambda: secrets.token_hex(8).encode())
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        """The gate judges the headers; what it turns away is counted when the full lane asks it again."""
        self.gate = replace(self.gate, refuse_call=None, on_turned=None)
        self.doors = Doors(self.gate)
        self.tickets = TicketBook(self.desk)
        self.endings = Endings(self.desk.recorder)

    def call_id(self) -> bytes:
        """An id that no other call has; its digits are spread evenly, as it is a trace id that may be sampled by."""
        return b"%b%016x" % (self._mark, next(self._numbers) * _SPREAD & _MASK)

    def way(self, url: bytes, headers: Headers, *, keep_alive: bool) -> Way | None:
        """The way in that a head describes; None when the full lane must look at it."""
        found = self.doors.find(url, headers)
        if found is None:
            return None
        header = found[1]
        named = None if header is None else modern.decode(header.decode("latin-1").strip(" \t"))
        return Way(found[0], header, named, keep_alive)

    def consider(self, way: Way, body: bytes, now: float) -> Passage | None:
        """The call, if it is a usual one; None leaves everything to the full lane. ``leave`` must follow."""
        door = way.door
        principal = door.principal(self.gate, now)
        read = None if principal is None else read_call(body)
        if principal is None or read is None:
            return None
        envelope, arguments = read
        params = envelope.params
        visit = None
        if door.era is Era.LEGACY:
            visit = self.desk.visits.find(door.visit_id, principal, door.arrival.server)
            if visit is None:
                return None
        elif way.named != params.name:
            return None
        key = (door, params.name, bytes(params.meta))
        ticket = self.tickets.find(key, now) or self._ask_for(key, principal, visit, now)
        if ticket is None or (ticket.rules and not _allows(ticket, arguments)):
            return None
        return Passage(principal, visit, envelope, arguments, ticket) if self._enter(ticket) else None

    def _enter(self, ticket: Ticket) -> bool:
        """Count a call in, and borrow its link, when there is room for it and for its record."""
        if ticket.use.under_way >= ticket.most or self.desk.turnstile.is_overloaded():
            return False
        try:
            self.desk.recorder.prepare()
        except StorageUnavailable:
            return False
        if not ticket.borrow():
            return False
        ticket.use.under_way += 1
        return True

    def _ask_for(self, key: Key, principal: Principal, visit: Visit | None, now: float) -> Ticket | None:
        """A new ticket."""
        known = self._modern(key[0], key[2]) if visit is None else self._legacy(visit, key[2])
        seat = self.desk.seats.name_of(principal)
        return None if known is None else self.tickets.make(key, seat, known[1], known[0], now)

    def _modern(self, door: Door, raw: bytes) -> tuple[Message, Visitor] | None:
        known = self._metas.get(raw)
        if known is not None:
            return known
        meta = modern_meta(raw, door.version)
        if meta is None or len(raw) > _LONG_META:
            return None
        if len(self._metas) >= _MOST_METAS:
            self._metas.clear()
        message: Message = {"params": {"_meta": meta}}
        # Whom it stands for makes no difference to what can be looked up with it.
        visitor = modern.visitor_of(message, door.version, Principal("", ""), self._nobody)
        self._metas[raw] = (meta, visitor)
        return meta, visitor

    def _legacy(self, visit: Visit, raw: bytes) -> tuple[Message, Visitor] | None:
        try:
            meta: Any = msgspec.json.decode(raw) if raw else {}
        except (ValueError, RecursionError):
            return None
        if not isinstance(meta, dict) or UNUSUAL & meta.keys() or len(raw) > _LONG_META:
            return None
        return cast("Message", meta), visit.visitor(self._nobody)

    def later(self, job: Any) -> None:  # noqa: ANN401 - any coroutine
        """Have something done that nobody waits for."""
        task = asyncio.get_running_loop().create_task(job)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def close(self) -> None:
        """Close every connection."""
        for home in self.tickets.homes.values():
            home.close()


def _allows(ticket: Ticket, arguments: dict[str, Any]) -> bool:
    name = ticket.item.name
    return all(isinstance(judge(rules, alias, name, arguments), Allow) for alias, rules in ticket.rules)
