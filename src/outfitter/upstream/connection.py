"""One server kept usable: opened when first needed, reopened when lost, rested when it keeps failing.

One task (``Connection.run``) owns the link: it opens and closes it. The task is started when the server is needed and
ends when it is not. Requests come from any task and wait, bounded,
until the link is ready. A request that may have reached the server is never repeated; one that certainly did not is,
once. One failing request does not disturb the others: only a wire that is gone for good takes the link with it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

from outfitter.errors import NeedsAuth, OutfitterError, UpstreamDown, UpstreamError, UpstreamLost
from outfitter.resolution import ArmedServer
from outfitter.upstream.eras import Agreement, Era
from outfitter.upstream.lifecycle import Happening, Health, Patience, State
from outfitter.upstream.link import Link, OnNotice, OpenWire, Peer, open_link
from outfitter.upstream.wire import SessionLost

T = TypeVar("T")
_log = logging.getLogger(__name__)
Use = Callable[[Link], Awaitable[T]]
Start = Callable[["Connection"], None]


@dataclass(slots=True)
class Connection:
    """A server that is connected on demand. States: see ``lifecycle.TABLE``; owner: the task that runs ``run``."""

    server: ArmedServer
    open_wire: OpenWire
    start: Start
    peer: Peer | None = None
    on_notice: OnNotice | None = None
    patience: Patience = field(default_factory=Patience)
    idle_seconds: float | None = None
    health: Health = field(default_factory=Health)
    era: Era | None = None
    _link: Link | None = None
    _in_use: int = 0
    _last_used: float = 0.0
    _dice: random.Random = field(default_factory=random.Random)
    _is_wanted: bool = False
    _is_running: bool = False
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _renewing: anyio.Lock = field(default_factory=anyio.Lock)
    _failures: int = 0

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"server '{self.server.planned.alias}'"

    @property
    def agreement(self) -> Agreement | None:
        """What was agreed on, while the link is open."""
        return self._link.agreement if self._link is not None else None

    # ── using it, from any task ──

    async def use(self, job: Use[T]) -> T:
        """The job's result on a ready link; repeated once when the server certainly did not see it."""
        try:
            return await self._use_once(job)
        except UpstreamLost as lost:
            if lost.may_have_run:
                raise
        return await self._use_once(job)

    async def _use_once(self, job: Use[T]) -> T:
        link = await self._ready()
        session = link.session_id
        self._in_use += 1
        try:
            result = await job(link)
        except SessionLost:
            await self._renew_session(link, session)
            raise
        except UpstreamLost as lost:
            if link.is_usable:
                self._count_failure(lost)
            raise
        except NeedsAuth as refused:
            self._rest(Happening.REFUSED, refused)
            raise
        finally:
            self._in_use -= 1
            self._last_used = anyio.current_time()
        self._recover()
        return result

    async def _renew_session(self, link: Link, lost: str | None) -> None:
        """One new handshake on the same wire, whoever notices first; the others find it done."""
        async with self._renewing:
            if link.session_id == lost:
                await link.renew()

    def _count_failure(self, error: OutfitterError) -> None:
        """Rest the server when it loses one request, or one life, after the other with no success between them."""
        self._failures += 1
        if self._failures >= self.patience.tries:
            self._note(Happening.LOST, error)
            self._rest(Happening.GAVE_UP, error)

    def _recover(self) -> None:
        self._failures = 0
        if self.health.state is not State.READY and self._link is not None:
            self._note(Happening.TRIED)
            self._note(Happening.OPENED)

    async def _ready(self) -> Link:
        """The open link; waits for the owner to open it, no longer than the tries may take."""
        connect = self.server.planned.definition.value.limits.connect
        limit = (connect + self.patience.longest_wait) * self.patience.tries
        with anyio.move_on_after(limit):
            while True:
                refusal = self.health.refusal(anyio.current_time(), self.name)
                if refusal is not None:
                    raise refusal
                if self._link is not None and self._link.is_usable:
                    self._claim_probe()
                    return self._link
                self._want()
                await self._changed.wait()
        raise UpstreamDown(f"not ready within {limit:.0f} s", retry_after=self.patience.cooldown, where=self.name)

    def _want(self) -> None:
        """Have the owner open the link; start the owner when there is none."""
        self._is_wanted = True
        if not self._is_running:
            self.start(self)
            self._is_running = True

    def is_forgettable(self, now: float, seconds: float) -> bool:
        """Whether nobody has used it for so long, and nothing about it needs to be remembered."""
        is_quiet = not (self._is_running or self._in_use) and self._last_used + seconds < now
        return is_quiet and self.health.refusal(now, self.name) is None

    def _claim_probe(self) -> None:
        """After a rest one request goes first; the others wait for what becomes of it."""
        if self.health.state in {State.DOWN, State.NEEDS_AUTH}:
            self.health = self.health.resting(anyio.current_time(), self.patience.cooldown)

    # ── owning it, in one task ──

    async def run(self) -> None:
        """Open, keep and reopen the link as long as somebody wants it; cancelled when the pool closes."""
        try:
            while self._is_wanted:
                self._is_wanted = False
                if self.health.refusal(anyio.current_time(), self.name) is None:
                    await self._keep_open()
                self._tell_waiters()
        finally:
            self._is_running = False
            self._tell_waiters()

    async def _keep_open(self) -> None:
        """One life of the link, with the tries it takes; problems end up in ``health``."""
        tries = 1 if self.health.state is State.DOWN else self.patience.tries
        for attempt in range(tries):
            await anyio.sleep(self.patience.wait_before(attempt, self._dice))
            self._note(Happening.TRIED)
            try:
                await self._live()
            except NeedsAuth as refused:
                self._rest(Happening.REFUSED, refused)
                return
            except OutfitterError as error:
                self._note(Happening.LOST, error)
                continue
            except Exception as error:  # noqa: BLE001 - the link loop is a named edge: one link must not end the others
                _log.exception("the link to %s ended by a fault of ours", self.name)
                self._note(Happening.LOST, UpstreamLost(f"the link broke: {type(error).__name__}", may_have_run=True))
                continue
            return
        self._rest(Happening.GAVE_UP, self.health.last_error)

    async def _live(self) -> None:
        """The link from its opening to its end; raises only when it could not be opened."""
        opened = False
        try:
            async with open_link(
                self.server, self.open_wire, peer=self.peer, on_notice=self.on_notice, known=self.era
            ) as link:
                opened, self.era = True, link.agreement.era
                self._link = link
                self._note(Happening.OPENED)
                self._tell_waiters()
                await self._until_over(link)
        except OutfitterError:
            if not opened:
                raise
        finally:
            self._link = None

    async def _until_over(self, link: Link) -> None:
        """Wait for the wire to go, or for nobody to use it any more."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch_wire, link, group)
            if self.on_notice is not None:
                group.start_soon(self._listen, link)
            if self.idle_seconds is not None:
                group.start_soon(self._watch_idle, self.idle_seconds, group)

    async def _watch_wire(self, link: Link, group: TaskGroup) -> None:
        error = await link.wait_lost()
        self._note(Happening.LOST, error)
        self._count_failure(error)
        group.cancel_scope.cancel()

    async def _listen(self, link: Link) -> None:
        """Keep the stream of changes open as long as the server has one."""
        while link.is_usable and link.agreement.era is Era.MODERN:
            try:
                await link.listen()
            except UpstreamError:
                return
            except OutfitterError:
                await anyio.sleep(self.patience.longest_wait)

    async def _watch_idle(self, seconds: float, group: TaskGroup) -> None:
        self._last_used = anyio.current_time()
        while self._in_use or anyio.current_time() < self._last_used + seconds:  # noqa: ASYNC110 - a time, not an event
            await anyio.sleep(max(self._last_used + seconds - anyio.current_time(), seconds / 4))
        self._link = None
        self._note(Happening.CLOSED)
        group.cancel_scope.cancel()

    def _rest(self, happening: Happening, error: OutfitterError | None) -> None:
        self._note(happening, error)
        self.health = self.health.resting(anyio.current_time(), self.patience.cooldown)

    def _note(self, happening: Happening, error: OutfitterError | None = None) -> None:
        self.health = self.health.after(happening, anyio.current_time(), error)

    def _tell_waiters(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
