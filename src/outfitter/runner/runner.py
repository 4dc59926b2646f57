"""The runner: which runs it takes, how it hears of them, and how it ends.

    beat     a heartbeat; hears what to stop, and takes over what a dead runner left
    hear     what happens at the coordinator, as it happens; without it the list is read again now and then
    claim    starts a run when there is a place for it and for its agent
    close    no new runs; those under way may end within the grace, then they are ended

``engine`` makes each run durable, ``working`` does it. Owner: the task that calls ``run``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from outfitter.basics import the_one_in
from outfitter.errors import Forbidden, NeedsToken, NotFound, OutfitterError, StorageUnavailable, Unavailable
from outfitter.runner.desk import Desk
from outfitter.runner.engine import Engine
from outfitter.runner.leftovers import end_orphans
from outfitter.runner.orders import ENDED, News, Offer, RunShown
from outfitter.runner.places import Active, Places
from outfitter.runner.ports import Executor, OrchestratorServer
from outfitter.runner.working import Work

_log = logging.getLogger(__name__)
_LIST_SECONDS, _PURGE_SECONDS, _END_SECONDS = 30.0, 2.0, 20.0
_AGAIN_SECONDS = 1.0
_ROLE_HINT = "OUTFITTER_TOKEN must hold a token of the role runner: outfitter tokens issue runner"


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How a runner is to be run."""

    id: str
    database: str = field(repr=False)
    folder: Path
    concurrency: int = 4
    grace: float = 30.0
    """Seconds that runs have to end when the runner is told to stop."""
    is_once: bool = False
    """Whether to end when nothing is left to do."""
    refused_seconds: float = 120.0
    """How long the runner goes on while its token is refused."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a runner is doing."""

    running: tuple[str, ...]
    """The runs that are executed, those that wait for another one with them."""
    waiting: int
    """How many are pending, for want of a place."""
    states: Mapping[str, int]
    """How many runs have ended in each state."""
    resting: int = 0
    """How many of those that are executed wait for another run, and take no place."""
    refused: tuple[str, ...] = ()
    """The pending runs that the coordinator did not let this runner begin, when it has ended for want of others."""

    @property
    def done(self) -> int:
        """How many runs have ended."""
        return sum(self.states.values())


@dataclass(slots=True)
class Runner:
    """One runner. ``run`` until ``close`` is called, or nothing is left to do."""

    desk: Desk
    options: RunnerOptions
    executors: Mapping[str, Executor]
    orchestrator: OrchestratorServer | None = None
    """Entered before; its address goes to the gateway with every run."""
    on_change: Callable[[Figures], None] = lambda _: None
    places: Places = field(default_factory=Places)
    """Whoever lets runs wait for runs, the orchestrator, has the same."""
    _work: Work = field(init=False)
    _engine: Engine = field(init=False)
    _waiting: dict[str, Offer] = field(default_factory=dict[str, Offer])
    """Runs that are pending, the oldest first."""
    _is_stale: bool = True
    """Whether the list of pending runs must be read again."""
    _wake: anyio.Event = field(default_factory=anyio.Event)
    _beat_now: anyio.Event = field(default_factory=anyio.Event)
    _closing: anyio.Event = field(default_factory=anyio.Event)
    _grace: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Waiting for the runs that are under way; cancelled when nobody wants to wait any longer."""
    _refused_runs: tuple[str, ...] = ()
    _refused: NeedsToken | None = None
    """Why the runner has given up, if it has."""

    def __post_init__(self) -> None:
        """Put its parts together."""
        events = self.options.folder / "events"
        self.places.most, self.places.changed = self.options.concurrency, self._change
        self._work = Work(self.desk, self.options.id, events, self.executors, self.orchestrator, self.places)
        self._engine = Engine(self.options.database, self._work)

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Execute runs until told to stop; Forbidden or Unavailable when the coordinator does not want this runner."""
        await anyio.to_thread.run_sync(end_orphans)
        try:
            await self._beat()
        except Forbidden as error:
            what = f"this runner may not say that it is alive: {error.message}"
            raise type(error)(what, where=self.desk.url, hint=_ROLE_HINT) from None
        try:
            async with self._engine, anyio.create_task_group() as group:
                on_ready()
                group.start_soon(self._keep_beating)
                group.start_soon(self._hear)
                group.start_soon(self._keep_purging)
                await self._claim()
                await self._end()
                group.cancel_scope.cancel()
        except BaseExceptionGroup as several:
            raise the_one_in(several) from None
        if self._refused is not None:
            raise self._refused

    def close(self) -> None:
        """Take no more runs, and end within the grace."""
        self._work.is_closing = True
        self._closing.set()
        self._wake.set()

    def hurry(self) -> None:
        """Close, and end the runs that are under way at once."""
        self.close()
        self._grace.cancel()

    @property
    def figures(self) -> Figures:
        """What it is doing now."""
        states = dict(self._engine.ends)
        return Figures(tuple(self.places.active), len(self._waiting), states, self.places.resting, self._refused_runs)

    # ── claiming ──

    async def _claim(self) -> None:
        while not self._closing.is_set():
            self._wake = anyio.Event()
            try:
                if self._is_stale:
                    await self._list()
                await self._start_what_fits()
                if await self._is_done():
                    return
            except (Unavailable, Forbidden) as error:
                _log.warning("no run is claimed now: %s", error)
                self._is_stale = True
                await self._wait(_AGAIN_SECONDS)
                continue
            await self._wait(_AGAIN_SECONDS if self._is_stale else _LIST_SECONDS)

    async def _is_done(self) -> bool:
        """Whether nothing is left to do for a runner that ends then; what is pending yet is looked at again."""
        if not self.options.is_once or self._waiting or self.places.active or self._engine.flights:
            return False
        pending = [run.id for run in await self.desk.runs("pending")]
        self._refused_runs = self._work.refusals.stubborn(pending)
        self._is_stale = len(self._refused_runs) < len(pending)
        return not self._is_stale

    async def _wait(self, seconds: float) -> None:
        """Wait until something has changed; when nothing did for long, the list is read again."""
        with anyio.move_on_after(seconds) as scope:
            await self._wake.wait()
        self._is_stale = self._is_stale or scope.cancelled_caught

    async def _list(self) -> None:
        self._is_stale, known = False, set(self._waiting)
        pending, refusals = await self.desk.runs("pending"), self._work.refusals
        refusals.keep({run.id for run in pending})
        offers = [_offer(run) for run in pending if not (self.places.is_active(run.id) or refusals.rests(run.id))]
        new = {run_id: offer for run_id, offer in self._waiting.items() if run_id not in known}  # heard of meanwhile
        self._waiting = {offer.run_id: offer for offer in offers} | new

    async def _start_what_fits(self) -> None:
        for offer in self.places.take_heard():
            self._waiting.setdefault(offer.run_id, offer)
        if self.places.is_full:
            return
        for offer in self.places.in_order(self._waiting.values()):
            if self.places.is_full or self._closing.is_set():
                return
            if self.places.has_room_for(offer.agent) and self._waiting.pop(offer.run_id, None) is not None:
                await self._start(offer)

    async def _start(self, offer: Offer) -> None:
        run_id = offer.run_id
        if run_id in self.places.active or run_id in self._engine.flights:
            return
        self.places.active[run_id] = Active(offer.agent)  # the place is kept before anything is waited for
        is_started = False
        try:
            is_started = await self._engine.start(offer, self._is_left)
        finally:
            kept = self.places.active.get(run_id)
            if not is_started and kept is not None and not kept.is_begun:
                del self.places.active[run_id]

    async def _is_left(self, runner: str) -> bool:
        """Whether what another runner has begun in the database is to be taken up here."""
        alive = [one.id for one in await self.desk.runners() if one.is_alive] or [self.options.id]
        return runner not in alive and self._is_chosen(alive)

    # ── hearing ──

    async def _hear(self) -> None:
        """Follow what happens to runs, until cancelled."""
        while True:
            try:
                async with aclosing(self.desk.news()) as news:
                    async for told in news:
                        self._take_note(told)
            except OutfitterError as error:
                _log.info("the coordinator's events ended: %s", error)
            await anyio.sleep(_AGAIN_SECONDS)

    def _take_note(self, told: News) -> None:
        if told.what == "begun":
            self._is_stale = True
        elif told.what == "created":
            self._waiting[told.run_id] = Offer(told.run_id, told.agent, told.session_id)
        elif told.what == "stopping":
            self._stop(told.run_id)
        elif told.what != "event":
            self._waiting.pop(told.run_id, None)
            return
        self._wake.set()

    def _stop(self, run_id: str) -> None:
        active = self.places.active.get(run_id)
        if active is not None and active.is_begun:
            active.end("stopped")

    # ── heartbeats ──

    async def _beat(self) -> float:
        """Say that this runner lives; the seconds until it should say so again."""
        running = [run_id for run_id, active in self.places.active.items() if active.attempt]
        answer = await self.desk.beat(self.options.id, self.options.concurrency, running, sorted(self.executors))
        for run_id in answer.stop:
            await self._end_named(run_id)
        return answer.seconds

    async def _end_named(self, run_id: str) -> None:
        """End a run: stopped if it is to be, and without a word if it has ended over there or is somebody else's."""
        active = self.places.active.get(run_id)
        if active is None or not active.attempt:
            return
        try:
            run = await self.desk.run(run_id)
        except NotFound:
            active.end("superseded")
            return
        if run.state in ENDED or (run.owner, run.attempt) != (self.options.id, active.attempt):
            active.end("superseded")
        elif run.state == "stopping":
            active.end("stopped")

    async def _keep_beating(self) -> None:
        """Beat until cancelled; while the coordinator is away, more often. A token that stays refused is the end."""
        good = anyio.current_time()
        while True:
            try:
                seconds = await self._beat()
                good = anyio.current_time()
                await self._take_over_if_allowed()
            except NeedsToken as error:
                _log.warning("no heartbeat: %s", error)
                seconds = _AGAIN_SECONDS
                if anyio.current_time() - good > self.options.refused_seconds and self._refused is None:
                    what = f"the coordinator refuses this runner's token: {error.message}"
                    self._refused = NeedsToken(what, where=self.desk.url, hint=_ROLE_HINT)
                    self.hurry()
            except OutfitterError as error:
                _log.info("no heartbeat: %s", error)
                seconds = _AGAIN_SECONDS
            await anyio.sleep(seconds)

    async def _take_over_if_allowed(self) -> None:
        """Take over; a token that may not see the others does not make this runner ask more often."""
        try:
            await self._take_over()
        except NeedsToken:
            raise
        except Forbidden as error:
            _log.warning("nothing is taken over: %s", error)

    async def _take_over(self) -> None:
        """Take up what runners that are gone have left, and what this one has forgotten."""
        if self._closing.is_set():
            return
        runners = await self.desk.runners()
        dead = [one.id for one in runners if not one.is_alive and one.id != self.options.id]
        alive = [one.id for one in runners if one.is_alive] or [self.options.id]
        if dead and self._is_chosen(alive):
            adopted = await self._engine.adopt(dead)
            if adopted:
                _log.warning("%d runs of runners that are gone are taken over", adopted)
        others = {*alive} - {self.options.id}
        for run in [*await self.desk.runs("running"), *await self.desk.runs("stopping")]:
            is_given_up = self._work.given_up.get(run.id, -1) >= run.attempt
            if run.owner not in others and not is_given_up and not self.places.is_full:
                await self._start(_offer(run, is_new=False))

    def _is_chosen(self, alive: Sequence[str]) -> bool:
        """Whether this runner takes up what is left in the database: one of the living, so that no two do at once."""
        return self._engine.is_own or min(alive) == self.options.id

    # ── the end ──

    async def _end(self) -> None:
        """Wait for the runs that are under way; at the end of the grace they are ended."""
        self._grace.deadline = anyio.current_time() + self.options.grace
        with self._grace:
            await self._until_idle()
        for active in list(self.places.active.values()):
            active.end("closing")
        with anyio.move_on_after(_END_SECONDS):
            await self._until_idle()

    async def _until_idle(self) -> None:
        while self._is_busy():
            self._wake = anyio.Event()
            await self._wake.wait()

    def _is_busy(self) -> bool:
        left = {run_id for run_id, active in self.places.active.items() if active.is_left}
        return bool((self._engine.flights | set(self.places.active)) - left)

    async def _keep_purging(self) -> None:
        while True:
            await anyio.sleep(_PURGE_SECONDS)
            try:
                await self._engine.purge()
            except StorageUnavailable as error:
                _log.info("nothing is purged: %s", error)

    def _change(self) -> None:
        self._wake.set()
        self.on_change(self.figures)


def _offer(run: RunShown, *, is_new: bool = True) -> Offer:
    return Offer(run.id, run.agent_name, run.session_id, is_new)
