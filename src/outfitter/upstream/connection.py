"""One server kept usable: opened when first needed, reopened when lost, rested when it keeps failing.

One task (``Connection.run``) owns the link: it opens and closes it. The task is started when the server is needed and
ends when it is not. Requests come from any task and wait, bounded,
until the link is ready. A request that may have reached the server is never repeated; one that certainly did not is,
once. One failing request does not disturb the others: only a wire that is gone for good takes the link with it.
A server that somebody listens to comes back by itself: at once when it was lost, and when its rest is over.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

from outfitter.errors import NeedsAuth, OutfitterError, UpstreamDown, UpstreamError, UpstreamLost
from outfitter.resolution import ArmedServer
from outfitter.upstream.clock import loop_time
from outfitter.upstream.eras import Agreement, Era
from outfitter.upstream.lifecycle import Happening, Health, Patience, State
from outfitter.upstream.link import Link, OnNotice, OpenWire, open_link
from outfitter.upstream.peers import Peer
from outfitter.upstream.reviving import greet
from outfitter.upstream.uptime import Uptime
from outfitter.upstream.wire import Message, SessionLost

T = TypeVar("T")
_log = logging.getLogger(__name__)
Use = Callable[[Link], Awaitable[T]]
Start = Callable[["Connection"], None]

TOOLS_CHANGED = "notifications/tools/list_changed"


@dataclass(slots=True)
class Connection:
    """A server that is connected on demand. States: see ``lifecycle.TABLE``; owner: the task that runs ``run``."""

    server: ArmedServer
    open_wire: OpenWire
    start: Start
    peer: Peer | None = None
    patience: Patience = field(default_factory=Patience)
    idle_seconds: float | None = None
    prefers: Era = Era.MODERN
    health: Health = field(default_factory=Health)
    era: Era | None = None
    uptime: Uptime = field(default_factory=Uptime)
    """Where its time is counted, with that of others to the same server."""
    _link: Link | None = None
    _in_use: int = 0
    _last_used: float = 0.0
    _dice: random.Random = field(default_factory=random.Random)
    _is_wanted: bool = False
    _is_running: bool = False
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _renewing: anyio.Lock = field(default_factory=anyio.Lock)
    _failures: int = 0
    _is_out: bool = False
    _is_closed: bool = False
    _owner: anyio.CancelScope | None = None
    _listeners: tuple[OnNotice, ...] = ()
    _listening: anyio.CancelScope | None = None

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"server '{self.server.planned.alias}'"

    @property
    def agreement(self) -> Agreement | None:
        """What was agreed on, while the link is open."""
        return self._link.agreement if self._link is not None else None

    # ── hearing of it, on its loop ──

    def listen_to(self, listener: OnNotice) -> Callable[[], None]:
        """Have the listener called with every notice of the server, until the function that is returned is called.

        A link that was opened anew may have other lists than before: it is told as a changed list of tools. A
        connection that is listened to is not idle.
        """

        def hear(message: Message) -> None:
            listener(message)

        def stop() -> None:
            self._listeners = tuple(other for other in self._listeners if other is not hear)
            if not self._listeners and self._listening is not None:
                self._listening.cancel()
            self._tell_waiters()

        self._listeners = (*self._listeners, hear)
        self._tell_waiters()
        return stop

    def _hear(self, message: Message) -> None:
        for listener in self._listeners:
            listener(message)

    # ── using it, from any task ──

    async def use(self, job: Use[T]) -> T:
        """The job's result on a ready link; repeated once when the server certainly did not see it."""
        try:
            return await self._use_once(job)
        except UpstreamLost as lost:
            if lost.may_have_run:
                raise
        return await self._use_once(job)

    def borrow(self) -> Link | None:
        """The open link when nothing speaks against using it now; whoever gets it gives it back."""
        link = self._link
        if link is None or self.health.state is not State.READY or self._is_closed or not link.is_usable:
            return None
        self._in_use += 1
        return link

    def give_back(self, now: float, *, is_good: bool) -> None:
        """End a borrowing; a good answer makes earlier failures forgotten."""
        self._in_use -= 1
        self._last_used = now
        if is_good:
            self._recover()

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
            lost.retry_after = self.health.rest_left(loop_time())
            raise
        except NeedsAuth as refused:
            self._rest(Happening.REFUSED, refused)
            refused.retry_after = self.patience.cooldown
            raise
        finally:
            self._in_use -= 1
            self._last_used = loop_time()
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
        if self.health.state is not State.READY and self._link is not None and not self._is_closed:
            self._note(Happening.TRIED)
            self._note(Happening.OPENED)
            self._come_back(is_another=True)

    async def _ready(self) -> Link:
        """The open link; waits for the owner to open it, no longer than the tries may take."""
        link = self._open_link()
        if link is not None:
            return link
        connect = self.server.planned.definition.value.limits.connect
        limit = (connect + self.patience.longest_wait) * self.patience.tries
        with anyio.move_on_after(limit):
            while link is None:
                self._want()
                await self._changed.wait()
                link = self._open_link()
            return link
        raise UpstreamDown(f"not ready within {limit:.0f} s", retry_after=self.patience.cooldown, where=self.name)

    def _open_link(self) -> Link | None:
        """The link, if it is open; raises why there will be none for now."""
        refusal = self._refusal()
        if refusal is not None:
            raise refusal
        if self._link is None or not self._link.is_usable:
            return None
        self._claim_probe()
        return self._link

    def _refusal(self) -> OutfitterError | None:
        if self._is_closed:
            return UpstreamDown("the connection is closed", retry_after=0.0, where=self.name)
        return self.health.refusal(loop_time(), self.name)

    def _want(self) -> None:
        """Have the owner open the link; start the owner when there is none."""
        if not self._is_wanted:
            self._is_wanted = True
            self._tell_waiters()
        if not self._is_running:
            self.start(self)
            self._is_running = True

    @property
    def is_in_use(self) -> bool:
        """Whether a request is under way."""
        return self._in_use > 0

    @property
    def last_used(self) -> float:
        """When a request last ended, by the clock of the loop."""
        return self._last_used

    @property
    def _is_busy(self) -> bool:
        return self._in_use > 0 or bool(self._listeners)

    def is_forgettable(self, now: float, seconds: float) -> bool:
        """Whether nobody has used it for so long, and nothing about it needs to be remembered."""
        is_quiet = not (self._is_running or self._is_busy) and self._last_used + seconds < now
        return is_quiet and self.health.refusal(now, self.name) is None

    def _claim_probe(self) -> None:
        """After a rest one request goes first; the others wait for what becomes of it."""
        if self.health.state in {State.DOWN, State.NEEDS_AUTH}:
            self.health = self.health.resting(loop_time(), self.patience.cooldown)

    # ── owning it, in one task ──

    async def run(self) -> None:
        """Open, keep and reopen the link as long as somebody wants it; cancelled when the pool closes."""
        try:
            with anyio.CancelScope() as self._owner:
                while self._is_wanted:
                    self._is_wanted = False
                    if self._refusal() is None:
                        await self._keep_open()
                    self._tell_waiters()
                    await self._wait_for_turn()
        finally:
            self._is_running = False
            self._tell_waiters()

    async def _wait_for_turn(self) -> None:
        """Want it again without being asked, when somebody listens and it was lost, or when its rest is over."""
        while self._listeners and not self._is_wanted and self.health.state in {State.DEGRADED, State.DOWN}:
            left = self.health.rest_left(loop_time())
            if left <= 0:
                self._is_wanted = True
                return
            with anyio.move_on_after(left):
                await self._changed.wait()

    def give_up(self) -> None:
        """Begin to end the link for good; its owner closes it."""
        self._is_closed = True
        self._note(Happening.CLOSED)
        if self._owner is not None:
            self._owner.cancel()
        self._tell_waiters()

    async def close(self) -> None:
        """End the link for good, and wait until it is gone."""
        self.give_up()
        while self._is_running:
            await self._changed.wait()

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
                self.server, self.open_wire, peer=self.peer, on_notice=self._hear, known=self.era, prefers=self.prefers
            ) as link:
                opened, is_another, self.era = True, self.era is not None, link.agreement.era
                self._link = link
                self._note(Happening.OPENED)
                self._tell_waiters()
                self._come_back(is_another=is_another)
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
            if link.agreement.era is Era.MODERN:
                group.start_soon(self._listen, link)
            if self.idle_seconds is not None:
                group.start_soon(self._watch_idle, self.idle_seconds, group)
            group.start_soon(self._watch_rest, link)

    async def _watch_wire(self, link: Link, group: TaskGroup) -> None:
        error = await link.wait_lost()
        _log.warning("%s was lost: %s", self.name, error.message)
        self._note(Happening.LOST, error)
        self._count_failure(error)
        group.cancel_scope.cancel()

    async def _listen(self, link: Link) -> None:
        """Keep the stream of changes open while somebody listens, as long as the server has one."""
        while link.is_usable:
            while not self._listeners:
                await self._changed.wait()
            try:
                with anyio.CancelScope() as self._listening:
                    await link.listen()
            except UpstreamError:
                return
            except OutfitterError:
                pass
            finally:
                self._listening = None
            await anyio.sleep(self.patience.longest_wait)  # a server may end the stream as often as it is opened

    async def _watch_rest(self, link: Link) -> None:
        """Ask for a sign of life when a rest is over whose link stayed open, if somebody listens."""
        while link.is_usable:
            left = self.health.rest_left(loop_time())
            if self.health.state is not State.DOWN or not self._listeners:
                await self._changed.wait()
            elif left > 0:
                with anyio.move_on_after(left):
                    await self._changed.wait()
            else:
                with suppress(OutfitterError):  # being asked, it rests again
                    await self.use(greet)

    async def _watch_idle(self, seconds: float, group: TaskGroup) -> None:
        self._last_used = loop_time()
        while self._is_busy or loop_time() < self._last_used + seconds:  # noqa: ASYNC110 - a time, not an event
            await anyio.sleep(max(self._last_used + seconds - loop_time(), seconds / 4))
        self._link = None
        self._note(Happening.CLOSED)
        group.cancel_scope.cancel()

    def _rest(self, happening: Happening, error: OutfitterError | None) -> None:
        self._note(happening, error)
        self.health = self.health.resting(loop_time(), self.patience.cooldown)
        if not self._is_out:
            self._is_out = True
            said = "it failed" if error is None else error.message
            _log.warning("%s is not available: %s; tried again in %g s", self.name, said, self.patience.cooldown)
        self._tell_waiters()

    def _come_back(self, *, is_another: bool) -> None:
        """It may have other lists than before: whoever listens is told so."""
        if self._is_out:
            _log.info("%s is back", self.name)
        if is_another or self._is_out:
            self._is_out = False
            self._hear({"jsonrpc": "2.0", "method": TOOLS_CHANGED})

    def _note(self, happening: Happening, error: OutfitterError | None = None) -> None:
        before, self.health = self.health, self.health.after(happening, loop_time(), error)
        self.uptime.move(before, self.health)

    def _tell_waiters(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
