"""Runs while they are executed, as the runners see them: begun, told of, finished; and runners that are heard of.

The coordinator owns the truth: a runner says which attempt it speaks for, and one that was given up for dead is
refused. A run whose runner is not heard of any more is ``lost``, once, whichever coordinator notices. Starting and
stopping runs is ``runs``'; which headers a run has is its plan's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import anyio

from outfitter.basics import quote
from outfitter.catalog import Agent, Catalog, JsonValue
from outfitter.coordinator.commands import executor_problem
from outfitter.coordinator.credentials import CredentialBook
from outfitter.coordinator.listing import check_limit, is_plain
from outfitter.coordinator.live import LiveCatalog
from outfitter.coordinator.shown import show_run, tell_run
from outfitter.coordinator.values import Author, ShownRun
from outfitter.coordinator.view import unknown
from outfitter.errors import OutfitterError, StorageUnavailable, UnknownRun
from outfitter.formats import write_executor
from outfitter.storage import (
    Ending,
    Executing,
    RunEvent,
    RunnerRecord,
    Runners,
    RunRecord,
    Speaker,
    Taking,
    Telling,
    TokenRecord,
)
from outfitter.storage import Runs as RunStore

ANYBODY = Speaker()
EndState: TypeAlias = Literal["stopped", "done", "failed", "lost"]
_log = logging.getLogger("outfitter.coordinator")
_DAY = 24 * 3600.0
_YEAR = 366 * _DAY
_MARGIN = 3600.0
_LOOKS = _BEATS = 6
"""How often abandoned runs are looked for, and runners say that they live, in the time after which runs are lost."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a runner may be silent, in seconds, and how long it is kept what runs have told, in days."""

    beat: float = 15.0
    """How often a runner says that it is alive."""
    grace: float = 90.0
    """After how long a silence its runs are lost: an outage of a minute, one beat before it and one that was cut off
    do not make up so much."""
    recovery: float = 300.0
    """The same for runs that another runner may execute again: it has this long to take them over."""
    keep_days: float | None = None
    """After how many days what an ended run has told is removed; never, if not said."""

    @classmethod
    def of(cls, grace: float, keep_days: float | None = None) -> LeaseTimes:
        """The times for this grace: six beats, so that some may be lost on their way."""
        return cls(grace / _BEATS, grace, max(grace, cls().recovery), keep_days)


@dataclass(frozen=True, slots=True)
class Claim:
    """Who wants to execute a run: see ``storage.Taking``."""

    runner: str
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    instead_of: str | None = None
    after: int | None = None
    speaker: Speaker = field(default_factory=Speaker)


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """What a runner is to do: the run, and whom it runs."""

    run: ShownRun
    attempt: int
    agent: Mapping[str, JsonValue] = field(repr=False)
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownRunner:
    """A runner, and whether it was heard of lately."""

    id: str
    capacity: int
    running: tuple[str, ...]
    executors: tuple[str, ...]
    first_seen: str
    last_seen: str
    is_alive: bool


MakeToken: TypeAlias = Callable[[str, str, float], TokenRecord]
"""What is kept of a new token for an agent and a run, which ends after so many seconds."""


@dataclass(frozen=True, slots=True)
class Executions:
    """The use cases of those who execute runs."""

    _store: Executing
    _runs: RunStore
    _runners: Runners
    _live: LiveCatalog
    _book: CredentialBook
    times: LeaseTimes = field(default_factory=LeaseTimes)
    clock: Callable[[], float] = time.time
    opened: float = field(default_factory=time.time)
    """When this coordinator began: before that no runner could be heard of."""

    async def begin(self, run_id: str, claim: Claim, make_token: MakeToken, who: Author) -> WorkOrder:
        """A run is executed by this runner from now on, in a new attempt with a new token.

        Conflict when it is somebody else's, or is stopping, or has ended.
        """
        _check_id(run_id)
        looked = await self._store.look(run_id)
        if looked is None:
            raise UnknownRun(f"no run {quote(run_id)}")
        run = looked.run
        try:
            agent = _agent_of((await self._live.reach(looked.revision)).catalog, run)
        except OutfitterError as error:
            await self._fail(run, error, who)
            raise
        taking = Taking(
            claim.runner,
            make_token(agent.name, run_id, _token_seconds(agent)),
            claim.values,
            claim.instead_of,
            self._text(self._dead_before(self.times.grace)),
            claim.after,
            claim.speaker,
        )
        begun = await self._store.begin(run_id, taking, tell_run(who.name))
        aliases = tuple(looked.plan.get("servers", ()))
        return WorkOrder(show_run(begun), begun.attempt, self._told(agent), aliases)

    async def append(self, run_id: str, told: Telling, speaker: Speaker = ANYBODY) -> None:
        """Keep what a run tells, numbered; repeats are harmless; Conflict for gaps, stale attempts, other speakers."""
        _check_id(run_id)
        await self._store.append(run_id, told, _tell_events, speaker)

    async def events(self, run_id: str, after: int = 0, limit: int = 100) -> tuple[tuple[RunEvent, ...], int | None]:
        """What a run has told after a number, and the number to ask on with, if there is more."""
        check_limit(limit)
        await self._run(run_id)
        found = await self._store.events(run_id, min(after, 2**31 - 1), limit + 1)
        return found[:limit], found[limit - 1].seq if len(found) > limit else None

    async def last_events(self, run_id: str, after: int = 0, limit: int = 100) -> tuple[RunEvent, ...]:
        """The last things a run has told after a number, the newest first."""
        check_limit(limit)
        await self._run(run_id)
        return await self._store.events(run_id, min(after, 2**31 - 1), limit, newest_first=True)

    async def finish(self, run_id: str, ending: Ending, who: Author, speaker: Speaker = ANYBODY) -> ShownRun:
        """A run has ended: its tokens end with it, and its credentials are forgotten."""
        _check_id(run_id)
        ended = await self._store.finish(run_id, ending, tell_run(who.name), speaker)
        self._book.drop(run_id)
        return show_run(ended)

    async def beat(self, runner: RunnerRecord, speaker: Speaker = ANYBODY) -> tuple[str, ...]:
        """A runner is alive; the ids of the runs that it is to stop. Conflict when somebody else speaks for it."""
        return await self._runners.beat(runner, speaker, self._text(self._dead_before(self.times.grace)))

    async def runners(self) -> tuple[ShownRunner, ...]:
        """Every runner that was ever heard of, by id."""
        alive = self._text(self.clock() - self.times.grace)
        return tuple(
            ShownRunner(one.id, one.capacity, one.running, one.executors, one.first_seen, one.last_seen,
                        is_alive=one.last_seen >= alive)
            for one in await self._runners.all()
        )  # fmt: skip

    async def run(self) -> None:
        """Look for abandoned runs until cancelled."""
        while True:
            await anyio.sleep(self.times.grace / _LOOKS)
            try:
                # As for the catalog: a read that is cut off leaves the driver's thread behind.
                with anyio.CancelScope(shield=True):
                    await self.sweep()
            except StorageUnavailable as error:
                _log.warning("abandoned runs cannot be looked for: [%s]", error.code)

    async def sweep(self) -> tuple[str, ...]:
        """Runs whose runner is silent for too long are lost; the ids of those that were lost here."""
        lost: list[str] = []
        for run in await self._store.abandoned(self._text(self._dead_before(self.times.grace))):
            dead_before = self._text(self._dead_before(self._grace(run)))
            error = {"code": "runner_lost", "message": f"runner '{run.owner}' is not heard of any more"}
            if await self._store.lose(run, error, dead_before, tell_run("coordinator")) is not None:
                _log.warning("run %s is lost: runner '%s' is silent", run.id, run.owner)
                self._book.drop(run.id)
                lost.append(run.id)
        return tuple(lost)

    def _grace(self, run: RunRecord) -> float:
        agent = self._live.catalog.agents.get(run.agent_name)
        recovers = agent is not None and agent.executor is not None and agent.executor.recover
        return max(self.times.grace, self.times.recovery) if recovers and run.state == "running" else self.times.grace

    def _dead_before(self, grace: float) -> float:
        """Who was not heard of since this moment is dead. While nobody listened, nobody could be heard."""
        now = self.clock()
        return float("-inf") if now - self.opened < grace else now - grace

    @staticmethod
    def _text(moment: float) -> str:
        """A moment as the database keeps it; one before all others sorts before all others."""
        if moment == float("-inf"):
            return ""
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def _fail(self, run: RunRecord, why: OutfitterError, who: Author) -> None:
        """A pending run that nobody can execute has failed; one that goes on is its runner's to end."""
        if run.state == "pending":
            error = {"code": why.code, "message": why.message}
            await self._runs.set_state(run.id, {"pending"}, "failed", error=error, tell=tell_run(who.name))
            self._book.drop(run.id)

    async def _run(self, run_id: str) -> RunRecord:
        _check_id(run_id)
        found = await self._runs.get(run_id)
        if found is None:
            raise UnknownRun(f"no run {quote(run_id)}")
        return found

    def _told(self, agent: Agent) -> dict[str, JsonValue]:
        """The agent as its runner needs it; its prompt is its own and then what its capabilities say."""
        capabilities = self._live.catalog.capabilities
        texts = [agent.system_prompt, *(capabilities[n].text for n in agent.capabilities if n in capabilities)]
        return {
            "name": agent.name,
            "description": agent.description,
            "role": agent.role,
            "system_prompt": "\n\n".join(text for text in texts if text),
            "executor": None if agent.executor is None else write_executor(agent.executor),
        }


def _check_id(run_id: str) -> None:
    """Nobody is asked for an id that no run has."""
    if not is_plain(run_id):
        raise UnknownRun(f"no run {quote(run_id)}")


def _token_seconds(agent: Agent) -> float:
    """How long the token of a run holds when nobody ends it: a while longer than its executor may take."""
    timeout = None if agent.executor is None else agent.executor.timeout
    return _DAY if timeout is None else min(timeout, _YEAR) + _MARGIN


def _agent_of(catalog: Catalog, run: RunRecord) -> Agent:
    agent = catalog.agents.get(run.agent_name)
    if agent is None:
        raise unknown("agents", run.agent_name)
    problem = executor_problem(agent)
    if problem is not None:
        raise problem
    return agent


def _tell_events(run: RunRecord, new: Sequence[RunEvent]) -> tuple[str, str, Mapping[str, Any]]:
    """Names and numbers only, of the last one and how many there are: what was said is read from the run."""
    last = new[-1]
    data = {"agent": run.agent_name, "session_id": run.session_id, "seq": last.seq, "type": last.type}
    data |= {"count": len(new)}
    return "run.event", f"runs/{run.id}", data
