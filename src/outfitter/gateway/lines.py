"""The gateway's lines to servers: one for all whose server, secrets, era and client capabilities are equal.

A handshake-era server is told once what its client can do, and may show other tools to another client: so the set of
capabilities is part of what must be equal. A server over HTTP that speaks both eras is spoken to in the client's own;
a program is started once for both. A line knows the lists of its server; they are fetched when they are first needed,
kept until the server says that they changed, and fetched again at most once a second, which is also how often a change
is told. A line that nobody uses lets its server go, and a client that always says something else of itself does not
get ever more of them. Subscriptions of single resources are ``subscribing``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import anyio

from outfitter.basics import Secret
from outfitter.errors import UpstreamError
from outfitter.gateway.faults import Rejected
from outfitter.gateway.limits import TOO_MANY
from outfitter.policy import Definition
from outfitter.resolution import ArmedServer, ArmedStdio
from outfitter.upstream import Agreement, Connection, Era, Link, Message, Pool, loop_time, share_key

T = TypeVar("T")
LIST_KEYS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Every list of the protocol, and under which key its entries stand."""
_CHANGES = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/prompts/list_changed": ("prompts/list",),
}
_METHOD_NOT_FOUND = -32601
_REFRESH_SECONDS = 1.0
MOST_LINES = 16
"""So many lines one agent has to one server; a new one takes the place of the one that is idle the longest."""
_OTHER = {Era.LEGACY: Era.MODERN, Era.MODERN: Era.LEGACY}
OnNotice = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class _Declared:
    """What a line's server is told that its client can do; single requests bring who really answers."""

    capabilities: Mapping[str, Any]

    async def respond(self, method: str, params: Message) -> Message:
        """Refuse: nobody stands by."""
        del params
        raise UpstreamError(f"no client is waiting that could answer {method}", rpc_code=_METHOD_NOT_FOUND)


@dataclass(slots=True, eq=False)
class Changes:
    """How often any list of any line has changed: whoever has worked something out from lists looks here first."""

    count: int = 0


@dataclass(slots=True)
class _Shelf:
    """One list of a server: kept until it is stale, fetched at most once a second."""

    changes: Changes
    items: tuple[Message, ...] | None = None
    fetched: float = float("-inf")
    version: int = 0
    is_stale: bool = False
    has_failed: bool = False
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def spoil(self) -> None:
        """The server says that the list changed."""
        if not self.is_stale:
            self.is_stale = True
            self._count()

    def fill(self, items: tuple[Message, ...]) -> tuple[Message, ...]:
        """Keep what was fetched."""
        if items != self.items:
            self._count()
        self.items, self.has_failed = items, False
        return items

    def _count(self) -> None:
        self.version += 1
        self.changes.count += 1


@dataclass(slots=True, eq=False)
class Line:
    """One connection of the gateway and the lists of its server."""

    connection: Connection
    idle_seconds: float | None = 300.0
    changes: Changes = field(default_factory=Changes)
    listeners: set[OnNotice] = field(default_factory=set[OnNotice])
    _shelves: dict[str, _Shelf] = field(init=False)
    _told: dict[str, float] = field(default_factory=dict[str, float])
    _defined: tuple[tuple[Message, ...], tuple[Definition, ...]] = ((), ())
    _stop_hearing: Callable[[], None] | None = None
    users: set[str] = field(default_factory=set[str])
    """The agents that have it."""
    is_retired: bool = False
    """It had to make room: whoever still has it asks for another."""
    _in_use: int = 0
    _last_used: float = 0.0

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self._last_used = loop_time()
        self._shelves = {method: _Shelf(self.changes) for method in LIST_KEYS}

    def hear(self, message: Message) -> None:
        """Take what the server says by itself: a changed list is stale, whoever listens hears of it."""
        method = str(message.get("method"))
        if method not in _CHANGES:
            self._pass_on(message)
            return
        for listed in _CHANGES[method]:
            self._shelves[listed].spoil()
        now = loop_time()
        due = self._told.get(method, float("-inf")) + _REFRESH_SECONDS
        if now >= due:
            self._told[method] = now
            self._pass_on(message)
        elif self._told[method] <= now:
            # One more at the end of the second stands for all that come until then.
            self._told[method] = due
            asyncio.get_running_loop().call_later(due - now, self._pass_on, message)

    def _pass_on(self, message: Message) -> None:
        for listener in tuple(self.listeners):
            listener(message)

    def version(self, method: str) -> int:
        """A number that changes with the list."""
        return self._shelves[method].version

    def is_stale(self, method: str) -> bool:
        """Whether the server has said that the list changed since it was fetched."""
        return self._shelves[method].is_stale

    def is_due(self, method: str) -> bool:
        """Whether the list must be fetched before it is used, and may be; one that failed is not waited for again."""
        shelf = self._shelves[method]
        if shelf.items is None:
            return not shelf.has_failed
        return shelf.is_stale and loop_time() >= shelf.fetched + _REFRESH_SECONDS

    def knows(self, method: str) -> bool:
        """Whether the list was ever fetched."""
        return self._shelves[method].items is not None

    def last_known(self, method: str) -> tuple[Message, ...]:
        """The list as it was when it was last fetched; empty when it never was."""
        return self._shelves[method].items or ()

    def definitions(self, listed: tuple[Message, ...]) -> tuple[Definition, ...]:
        """What a model sees of the tools of a list, worked out once for every list that is fetched."""
        if self._defined[0] is not listed:
            self._defined = listed, tuple(map(Definition.of_tool, listed))
        return self._defined[1]

    async def use(self, job: Callable[[Link], Awaitable[T]]) -> T:
        """The job's result on the open link."""
        self._attend()
        self._in_use += 1
        try:
            return await self.connection.use(job)
        finally:
            self._in_use -= 1
            self._last_used = loop_time()

    async def agreement(self) -> Agreement:
        """What the server says of itself."""
        return await self.use(_agreement_of)

    async def items(self, method: str, *, is_fresh: bool = True) -> tuple[Message, ...]:
        """A list of the server, all pages; empty when the server does not have that kind of thing.

        One that need not be fresh is the last one known, while a changed list may not be fetched again yet.
        """
        shelf = self._shelves[method]
        if shelf.items is not None and not (shelf.is_stale and (is_fresh or self.is_due(method))):
            return shelf.items
        async with shelf.lock:
            if shelf.items is not None and not shelf.is_stale:
                return shelf.items
            await anyio.sleep(max(0.0, shelf.fetched + _REFRESH_SECONDS - loop_time()))
            shelf.fetched, shelf.is_stale = loop_time(), False
            try:
                return shelf.fill(tuple(await self.use(lambda link: _fetch(link, method))))
            except BaseException:
                shelf.is_stale = shelf.has_failed = True
                raise

    # ── resting ──

    @property
    def is_idle(self) -> bool:
        """Whether nobody asks or hears anything on it now."""
        return not (self._in_use or self.listeners or self.connection.is_in_use)

    @property
    def last_used(self) -> float:
        """When it was last used, by the clock of the loop."""
        return max(self._last_used, self.connection.last_used)

    def retire(self) -> None:
        """Let it go for good."""
        self.is_retired = True
        self._stop()
        self.changes.count += 1

    def _stop(self) -> None:
        if self._stop_hearing is not None:
            self._stop_hearing()
            self._stop_hearing = None

    def _attend(self) -> None:
        """Hear the server while the line is in use; one that is heard is not closed for being idle."""
        self._last_used = loop_time()
        if self._stop_hearing is None:
            self._stop_hearing = self.connection.listen_to(self.hear)
            self._look_later(self.idle_seconds)

    def _look_later(self, seconds: float | None) -> None:
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, self._rest_if_idle, seconds)

    def _rest_if_idle(self, seconds: float) -> None:
        """Stop hearing when nobody uses the line; the connection then closes by itself, and lists are forgotten."""
        if self.is_retired:
            return
        left = self._last_used + seconds - loop_time()
        if self._in_use or self.listeners or left > 0:
            self._look_later(max(left, seconds / 4))
            return
        self._stop()
        for shelf in self._shelves.values():
            shelf.spoil()


async def _agreement_of(link: Link) -> Agreement:
    return link.agreement


async def _fetch(link: Link, method: str) -> list[Message]:
    if method.partition("/")[0] not in link.agreement.capabilities:
        return []
    try:
        return await (link.list_tools() if method == "tools/list" else link.list_all(method, LIST_KEYS[method]))
    except UpstreamError as error:
        if error.rpc_code == _METHOD_NOT_FOUND:
            return []
        raise


LineKey: TypeAlias = "tuple[Secret, str, str]"


@dataclass(slots=True)
class Exchange:
    """The lines of a gateway."""

    pool: Pool
    changes: Changes = field(default_factory=Changes)
    _lines: dict[LineKey, Line] = field(default_factory=dict["LineKey", Line])
    _had: dict[tuple[str, Secret], dict[LineKey, Line]] = field(
        default_factory=dict[tuple[str, Secret], "dict[LineKey, Line]"]
    )
    """The lines of each agent to each server."""

    def line(self, server: ArmedServer, agent: str, era: Era, capabilities: Mapping[str, Any]) -> Line:
        """The line for a server and a client's era and capabilities; shared where the definition allows it.

        Rejected when the agent has so many to this server that it gets no more, and all of them are in use.
        """
        owner = "" if server.planned.definition.value.shareable else agent
        key, said = share_key(server), json.dumps(capabilities, sort_keys=True)
        if isinstance(server.transport, ArmedStdio):
            # A program costs more than a translation: clients of both eras share one.
            era = Era.MODERN
        place, turned = (key, owner, f"{era} {said}"), (key, owner, f"{_OTHER[era]} {said}")
        found, other = self._lines.get(place), self._lines.get(turned)
        if found is None and other is not None and other.connection.era is era:
            # It was asked for the other era first and has only this one.
            place, found = turned, other
        had = self._had.setdefault((agent, key), {})
        if place not in had and len(had) >= MOST_LINES:
            self._make_room(agent, had)
        if found is None:
            connection = self.pool.connect(server, peer=_Declared(capabilities), prefers=era)
            found = self._lines[place] = Line(connection, self.pool.idle_seconds, self.changes)
        found.users.add(agent)
        had[place] = found
        return found

    def _make_room(self, agent: str, had: dict[LineKey, Line]) -> None:
        """Take the line from an agent that it has not used for the longest time; the last who has it ends it."""
        idle = [place for place, line in had.items() if line.is_idle]
        if not idle:
            data = {"code": "too_many_lines", "retryAfter": _REFRESH_SECONDS}
            told = f"agent '{agent}' has {MOST_LINES} connections to one server in use, each for other capabilities"
            raise Rejected(told, rpc_code=TOO_MANY, status=429, data=data)
        place = min(idle, key=lambda one: had[one].last_used)
        line = had.pop(place)
        line.users.discard(agent)
        if not line.users:
            del self._lines[place]
            line.retire()
            self.pool.let_go(line.connection)

    def leave(self, agent: str) -> None:
        """Take every line from somebody who comes no more; the last who has one ends it."""
        for owner in [owner for owner in self._had if owner[0] == agent]:
            for place, line in self._had.pop(owner).items():
                line.users.discard(agent)
                if not line.users and self._lines.pop(place, None) is line:
                    line.retire()
                    self.pool.let_go(line.connection)

    def lines(self) -> tuple[Line, ...]:
        """Every line, in use or not."""
        return tuple(self._lines.values())
