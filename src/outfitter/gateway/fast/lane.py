"""Which calls take the fast lane: the questions every call is asked, in the order of the full lane, all or nothing.

The same gate, tokens, visits, views, plans and links answer them. A call that fails any of them has not been touched
and goes to the full lane, which says what is wrong. What happens to a call that is taken is ``calls``.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import msgspec

from outfitter.errors import NotFound
from outfitter.gateway import modern
from outfitter.gateway.desk import Desk
from outfitter.gateway.fast.doors import Door, Doors, Headers
from outfitter.gateway.fast.envelopes import Envelope, read_call
from outfitter.gateway.fast.tickets import UNUSUAL, Ticket, TicketBook, modern_meta
from outfitter.gateway.gate import Gate
from outfitter.gateway.records import CallRecord
from outfitter.gateway.views import View
from outfitter.gateway.visitors import Principal, Visitor
from outfitter.gateway.visits import Visit
from outfitter.policy import Allow, judge
from outfitter.upstream import Era, Link, Message

Record = Callable[[CallRecord], None]
_LONG_META = 2048
_MOST_METAS = 1024


class Nobody:
    """A channel for looking things up: nothing is said through it."""

    def tell(self, message: Message) -> None:
        """Nothing."""

    async def ask(self, method: str, params: Message) -> Message:
        """Never asked."""
        del params
        raise TypeError(f"{method} was asked of nobody")


class Passage(NamedTuple):
    """A call that may take the fast lane, its link borrowed."""

    principal: Principal
    era: Era
    visit: Visit | None
    envelope: Envelope
    arguments: dict[str, Any]
    ticket: Ticket
    link: Link


@dataclass(slots=True, eq=False)
class Lane:
    """The fast lane of one gateway. ``record`` is called before the last byte of each answer goes out."""

    desk: Desk
    gate: Gate
    record: Record | None = None
    doors: Doors = field(init=False)
    tickets: TicketBook = field(default_factory=TicketBook)
    taken: int = 0
    """How many calls took it."""
    handed: int = 0
    """How many of them went on in the full lane."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _metas: dict[bytes, tuple[Message, Visitor]] = field(default_factory=dict[bytes, tuple[Message, Visitor]])
    _nobody: Nobody = field(default_factory=Nobody)
    _mark: str = field(default_factory=lambda: secrets.token_hex(12))
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        """The gate judges the headers; what it turns away is counted when the full lane asks it again."""
        self.gate = replace(self.gate, refuse_call=None, on_turned=None)
        self.doors = Doors(self.gate)

    def call_id(self) -> str:
        """An id that no other call has."""
        return f"{self._mark}{next(self._numbers):08x}"

    def consider(self, url: bytes, headers: Headers, body: bytes, now: float) -> Passage | None:
        """The call, if it is a usual one; None leaves everything to the full lane."""
        found = self.doors.find(url, headers)
        read = None if found is None else read_call(body)
        if found is None or read is None:
            return None
        door, named = found
        envelope, arguments = read
        principal = door.principal(self.gate, now)
        if principal is None:
            return None
        try:
            view = self.desk.view(door.arrival.agent, door.arrival.server)
        except NotFound:
            return None
        visit, ticket = None, None
        if door.era is Era.MODERN:
            if modern.decode(named) == envelope.params.name:
                ticket = self._modern(door, view, envelope, now)
        else:
            visit = self.desk.visits.find(door.visit_id, principal, door.arrival.server)
            ticket = None if visit is None else self._legacy(visit, view, envelope, now)
        if ticket is None or not _allows(ticket, arguments):
            return None
        return self._enter(Passage(principal, door.era, visit, envelope, arguments, ticket, ticket.link), now)

    def _enter(self, passage: Passage, now: float) -> Passage | None:
        """Count the call in and borrow its link; ``leave`` and ``count_out`` undo it."""
        ticket = passage.ticket
        if not self.desk.begin_call(passage.principal, ticket.view):
            return None
        connection = ticket.item.line.connection
        link = connection.borrow()
        if link is passage.link:
            return passage
        if link is not None:
            connection.give_back(now, is_good=False)
        self.count_out(passage)
        return None

    def leave(self, passage: Passage, *, is_good: bool) -> None:
        """Give the link back."""
        now = asyncio.get_running_loop().time()
        passage.ticket.item.line.connection.give_back(now, is_good=is_good)

    def count_out(self, passage: Passage) -> None:
        """The call has ended."""
        self.desk.end_call(passage.ticket.view)

    def note(self, record: CallRecord) -> None:
        """Write a call down."""
        (self.record or self.desk.recorder.record)(record)

    def _is_rated(self, view: View) -> bool:
        """Whether calls are counted by the second: one that changes lanes would count twice."""
        return self.desk.turnstile.limits.of(view.seat.plan).calls_per_second is not None

    def _modern(self, door: Door, view: View, envelope: Envelope, now: float) -> Ticket | None:
        raw, name = bytes(envelope.params.meta), envelope.params.name
        known = self._metas.get(raw) or self._read_meta(raw, door)
        if known is None:
            return None
        key = (id(view), known[1].declares, name, raw)
        ticket = self.tickets.find(key, view, now)
        if ticket is not None or self._is_rated(view):
            return ticket
        return self.tickets.make(key, view, known[1], known[0], now)

    def _read_meta(self, raw: bytes, door: Door) -> tuple[Message, Visitor] | None:
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

    def _legacy(self, visit: Visit, view: View, envelope: Envelope, now: float) -> Ticket | None:
        raw, name = bytes(envelope.params.meta), envelope.params.name
        key = (id(view), visit.declares, name, raw)
        ticket = self.tickets.find(key, view, now)
        if ticket is not None or self._is_rated(view):
            return ticket
        try:
            meta: Any = msgspec.json.decode(raw) if raw else {}
        except (ValueError, RecursionError):
            return None
        if not isinstance(meta, dict) or UNUSUAL & meta.keys() or len(raw) > _LONG_META:
            return None
        return self.tickets.make(key, view, visit.visitor(self._nobody), cast("Message", meta), now)

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
