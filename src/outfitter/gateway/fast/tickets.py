"""What all calls of one tool by one client have in common, worked out once: the decision, the line, the bytes.

A ticket holds until the configuration or any list of a server changes; then it is worked out again, or there is none
and the full lane handles the call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from outfitter.calls import META_NAMES
from outfitter.catalog import SearchMode, ToolRule, rewrites
from outfitter.errors import NotFound
from outfitter.gateway import modern
from outfitter.gateway.desk import Desk
from outfitter.gateway.fast.doors import Door
from outfitter.gateway.fast.upstreams import Home
from outfitter.gateway.forwarding import Forwarding
from outfitter.gateway.limits import Use
from outfitter.gateway.records import PlainLines
from outfitter.gateway.views import Item, View
from outfitter.gateway.visitors import Principal, Visitor
from outfitter.policy import Allow, Meter
from outfitter.resolution import PlannedServer
from outfitter.upstream import Connection, Era, HttpWire, Link, Message, StdioWire, mirrored_parameters

MOST_TICKETS = 8192
_MOMENT = 0.05
UNUSUAL = frozenset({"progressToken", "traceparent"})
"""What only the full lane sees to, in ``_meta``."""
_PLAIN_HEADER = re.compile(r"[\x20-\x7e]*")
_PLAIN_PATH = re.compile(r"[\x21-\x7e]+")
_encode = msgspec.json.Encoder().encode
Key = tuple[Door, str, bytes]
"""A client, the name of a tool, and ``_meta``."""


@dataclass(slots=True, eq=False)
class Ticket:
    """How a call of one tool is sent. ``head`` and ``home`` are for HTTP, ``pipe`` is for stdio."""

    shown: str
    """The name that the client uses."""
    item: Item
    connection: Connection
    link: Link
    session: str | None
    rules: tuple[tuple[str, tuple[ToolRule, ...]], ...]
    """Those that speak of this tool and look at arguments, with those beside them, each set under its alias."""
    body: bytes
    """The request from after its id to the end of ``_meta``."""
    use: Use
    """Where the agent's calls are counted."""
    most: int
    """How many there may be at a time."""
    meter: Meter | None = None
    """Where they are counted against budgets."""
    stamp: int = -1
    until: float = 0.0
    head: bytes = b""
    home: Home | None = None
    pipe: StdioWire | None = None
    _lines: tuple[Principal, PlainLines] | None = None

    def lines_of(self, principal: Principal) -> PlainLines:
        """How the calls of this tool by a client are written down."""
        known = self._lines
        if known is None or known[0] is not principal:
            item = self.item
            lines = PlainLines.of(
                principal.agent, principal.token_id, principal.run_id,
                shown=self.shown, server=item.alias, tool=item.name,
            )  # fmt: skip
            known = self._lines = principal, lines
        return known[1]

    def borrow(self) -> bool:
        """Use the link; False when it is not the one that the ticket was made for, or cannot be used now."""
        link = self.connection.borrow()
        if link is self.link and self.link.session_id == self.session:
            return True
        if link is not None:
            self.connection.give_back(0.0, is_good=False)
        return False

    def write(self, request_id: int, arguments: bytes) -> bytes:
        """The whole request."""
        if not arguments:
            body = b'{"jsonrpc":"2.0","id":%d%b}}' % (request_id, self.body)
        else:
            body = b'{"jsonrpc":"2.0","id":%d%b,"arguments":%b}}' % (request_id, self.body, arguments)
        if self.pipe is not None:
            # Between the values of a JSON text a line break is a space; inside of them there is none.
            return body.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
        return b"%b%d\r\n\r\n%b" % (self.head, len(body), body)


@dataclass(slots=True, eq=False)
class TicketBook:
    """The tickets in use, and the homes of the connections they share."""

    desk: Desk
    homes: dict[tuple[str, int], Home] = field(default_factory=dict[tuple[str, int], Home])
    _tickets: dict[Key, Ticket] = field(default_factory=dict[Key, Ticket])

    @property
    def stamp(self) -> int:
        """A number that grows with every change that could make a ticket wrong."""
        return self.desk.seats.generation + self.desk.exchange.changes.count

    def find(self, key: Key, now: float) -> Ticket | None:
        """A ticket that is still good."""
        ticket = self._tickets.get(key)
        return ticket if ticket is not None and ticket.stamp == self.stamp and now < ticket.until else None

    def make(self, key: Key, seat: str, visitor: Visitor, meta: Message, now: float) -> Ticket | None:
        """A ticket for a tool of the client's view; None when its calls are not for the fast lane.

        ``seat`` is the name of the client's seat.
        """
        stamp, arrival = self.stamp, key[0].arrival
        try:
            view = self.desk.view(seat, arrival.server)
        except NotFound:
            return None
        listing = view.known("tools/list", visitor)
        item = None if listing is None else listing.items.get(key[1])
        if item is None or self.desk.keeping.concerns(view.seat.plan.agent):
            return None
        ticket = self._tickets.get(key)
        if ticket is None or ticket.item is not item or not ticket.borrow():
            ticket = self._draw(view, key[1], item, visitor, meta)
        else:
            ticket.connection.give_back(0.0, is_good=False)
        if ticket is not None:
            if len(self._tickets) >= MOST_TICKETS:
                self._tickets.clear()
            ticket.stamp = stamp
            # A list that is known to be stale is used until it is fetched again, which needs no further change.
            ticket.until = now + _MOMENT if view.is_stale("tools/list", visitor) else float("inf")
            self._tickets[key] = ticket
        return ticket

    def _draw(self, view: View, shown: str, item: Item, visitor: Visitor, meta: Message) -> Ticket | None:
        if shown in META_NAMES and view.seat.plan.agent.tool_search.mode is not SearchMode.NEVER:
            return None
        link, counted = _link_of(item), self.desk.turnstile.use_of(view.seat.plan)
        # A call that changes lanes would be counted twice by the second.
        if link is None or counted is None or _is_mirrored(item, visitor) or rewrites(item.override) or item.is_cut:
            return None
        params: Message = {"name": item.name, "_meta": meta} if meta else {"name": item.name}
        asked = Forwarding(item.line, visitor, "tools/call", params).params_for(link)
        dressed = link.dress_call(item.name, cast("Message", asked.get("_meta", {})))
        if dressed is None:
            return None
        said = b',"_meta":' + _encode(dressed[0]) if dressed[0] else b""
        body = b',"method":"tools/call","params":{"name":' + _encode(item.name) + said
        planned = view.seat.planned(item.alias)
        rules = _rules_on_arguments(planned, item.name)
        if planned.closed_by(item.name) or not (rules or isinstance(planned.decide(item.name, {}), Allow)):
            return None
        ticket = Ticket(shown, item, item.line.connection, link, link.session_id, rules, body, *counted)
        ticket.meter = self.desk.governing.accounts.meter_of(view.seat, item.alias, item.name)
        return ticket if self._route(ticket, visitor, dressed[1]) else None

    def _route(self, ticket: Ticket, visitor: Visitor, headers: Mapping[str, str]) -> bool:
        """Add how the request gets there; False when the fast lane does not go there."""
        wire = ticket.link.wire
        if isinstance(wire, StdioWire):
            # What a program says meanwhile is not told apart by call: someone must stand by, if anyone would listen.
            hears = visitor.era is Era.LEGACY and "logging" in ticket.link.agreement.capabilities
            ticket.pipe = wire
            return not visitor.capabilities and not hears
        return isinstance(wire, HttpWire) and self._route_http(ticket, wire, headers)

    def _route_http(self, ticket: Ticket, wire: HttpWire, headers: Mapping[str, str]) -> bool:
        plain = wire.endpoint.plain(headers)
        if plain is None:
            return False
        parts = urlsplit(plain[0])
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = _head(parts.netloc, target, plain[1])
        if parts.scheme != "http" or parts.hostname is None or head is None:
            return False
        place = (parts.hostname, parts.port or 80)
        home = self.homes.get(place)
        if home is None:
            home = self.homes[place] = Home(*place, wire.client.addresses, wire.endpoint.connect)
        ticket.home, ticket.head = home, head
        return True


def _link_of(item: Item) -> Link | None:
    """The open link of a tool's line."""
    connection = item.line.connection
    link = connection.borrow()
    if link is not None:
        connection.give_back(0.0, is_good=False)
    return link


def _is_mirrored(item: Item, visitor: Visitor) -> bool:
    """Whether the client must repeat arguments in headers, which the full lane compares."""
    try:
        return visitor.era is Era.MODERN and bool(mirrored_parameters(item.entry.get("inputSchema")))
    except ValueError:
        return True


def _rules_on_arguments(planned: PlannedServer, tool: str) -> tuple[tuple[str, tuple[ToolRule, ...]], ...]:
    """The rules that must be asked about every call of a tool; none when what they say is always the same."""
    sets = [
        (one.alias, tuple(rule for rule in one.rules if rule.speaks_of(one.alias, tool))) for one in planned.rule_sets
    ]
    is_open = any(rule.arguments for _, rules in sets for rule in rules)
    return tuple((alias, rules) for alias, rules in sets if rules) if is_open else ()


def _head(host: str, target: str, headers: Mapping[str, str]) -> bytes | None:
    """The request's head up to its length; None when it cannot be written plainly."""
    named = {"User-Agent": "outfitter", "Accept-Encoding": "identity"}
    named = {name: value for name, value in named.items() if name.lower() not in {key.lower() for key in headers}}
    named |= headers
    is_plain = all(_PLAIN_HEADER.fullmatch(name) and _PLAIN_HEADER.fullmatch(value) for name, value in named.items())
    is_owned = any(name.lower() in {"host", "content-length", "transfer-encoding", "connection"} for name in named)
    if not is_plain or is_owned or _PLAIN_PATH.fullmatch(target) is None:
        return None
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in named.items())]
    return ("\r\n".join(lines) + "\r\nContent-Length: ").encode("ascii")


def modern_meta(raw: bytes, version: str) -> Message | None:
    """The ``_meta`` of a modern call; None when the full lane must look at it."""
    try:
        meta: Any = msgspec.json.decode(raw) if raw else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(meta, dict):
        return None
    found = cast("Message", meta)
    is_usual = (
        found.get(f"{modern.META}protocolVersion") == version and not {"progressToken", "traceparent"} & found.keys()
    )
    is_usual = is_usual and isinstance(found.get(f"{modern.META}clientCapabilities"), dict)
    return found if is_usual and f"{modern.META}logLevel" not in found else None
