"""Runs while they are executed: who owns one, in which attempt, what it tells, and how it ended.

Every write of a runner names the attempt it belongs to; one of an earlier attempt is refused, so a runner that was
given up for dead changes nothing any more. What is sent twice is stored once. Each change is kept together with the
tokens it makes or ends and with what is told of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlalchemy import bindparam, func, insert, or_, select

from outfitter.errors import Conflict, TooManyEvents, UnknownRun
from outfitter.storage.registry.events import Events, Told
from outfitter.storage.registry.run_rows import RunRows, written
from outfitter.storage.registry.runners import ANYBODY, Runners, Seen, Speaker
from outfitter.storage.registry.runs import TellRun
from outfitter.storage.registry.store import Store, Turn
from outfitter.storage.registry.tables import counters, run_events, runners, runs, sessions
from outfitter.storage.registry.tokens import ApiTokens
from outfitter.storage.registry.values import ENDED, RunEvent, RunRecord, RunState, TokenRecord

TellEvents: TypeAlias = Callable[[RunRecord, Sequence[RunEvent]], Told]
"""What to tell of new events of a run, at least one, in one word: others listen too."""
MOST_EVENTS = 100_000
"""How many events of one run are kept."""
_GOING_ON: frozenset[RunState] = frozenset({"running", "stopping"})
_RUN = runs.c.id == bindparam("run")
_REVISION = select(counters.c.value).where(counters.c.name == "revision").scalar_subquery()
_LOOK = (
    select(runs, sessions.c.plan, _REVISION)
    .select_from(runs.outerjoin(sessions, sessions.c.id == runs.c.session_id))
    .where(_RUN)
)
_OWNER, _OTHER = runners.alias("owner_runner"), runners.alias("other_runner")
_ENDS = [one.c[name].label(f"{one.name}_{name}") for one in (_OWNER, _OTHER) for name in ("last_seen", "subject")]
_BY_OWNER = runs.outerjoin(_OWNER, _OWNER.c.id == runs.c.owner)
_KNOWN = select(runs, *_ENDS).select_from(_BY_OWNER.outerjoin(_OTHER, _OTHER.c.id == bindparam("asking"))).where(_RUN)
_LAST = select(func.max(run_events.c.seq)).where(run_events.c.run_id == bindparam("run"))
_ADD = insert(run_events)


@dataclass(frozen=True, slots=True)
class Looked:
    """A run, the plan of its session, and the revision of the registry then."""

    run: RunRecord
    plan: Mapping[str, Any] = field(repr=False)
    revision: int


@dataclass(frozen=True, slots=True)
class Taking:
    """Who takes a run, with the token that its executor gets.

    ``instead_of`` is the owner that is taken for dead; it is when it was not heard of since ``dead_before``. ``after``
    is the attempt that the runner has seen last, when it says so.
    """

    runner: str
    token: TokenRecord = field(repr=False)
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    instead_of: str | None = None
    dead_before: str = ""
    after: int | None = None
    speaker: Speaker = ANYBODY


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, as its runner says."""

    attempt: int
    state: RunState
    result: Any = None
    error: Any = None


@dataclass(frozen=True, slots=True)
class Telling:
    """What a run tells in an attempt; ``first`` is the number of the first event."""

    attempt: int
    first: int
    events: Sequence[RunEvent] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Known:
    """A run in a turn, its owner, and the runner that asks."""

    run: RunRecord
    owner: Seen | None
    asking: Seen | None


@dataclass(frozen=True, slots=True)
class Executing:
    """What runners do with runs."""

    _store: Store
    _tokens: ApiTokens
    _events: Events
    _runners: Runners
    most_events: int = MOST_EVENTS

    async def look(self, run_id: str) -> Looked | None:
        """What is to be known before a run is begun, in one statement; None when there is no such run."""
        async with self._store.reading() as connection:
            row = (await connection.execute(_LOOK, {"run": run_id})).one_or_none()
        if row is None:
            return None
        *_, plan, revision = row
        run = self._rows.run(row)
        return Looked(run, {} if plan is None else self._rows.plan(run.session_id, plan), revision)

    async def begin(self, run_id: str, taking: Taking, tell: TellRun) -> RunRecord:
        """The run belongs to this runner from now on, in a new attempt; earlier tokens of it are ended.

        Conflict when somebody else has it, and when it is stopping or has ended; UnknownRun when there is none.
        """
        async with self._store.writing("runs") as turn:
            known = await self._known(turn, run_id, taking.runner)
            run = known.run
            _check_taking(known, taking)
            started = run.started_at or self._store.now()
            values = {"owner": taking.runner, "attempt": run.attempt + 1, "started_at": started}
            values |= {"given": json.dumps(dict(taking.given))}
            run = await self._rows.move(turn, run_id, "running", values)
            await self._runners.touch_in(turn, taking.runner, known.asking, taking.speaker, taking.dead_before)
            await self._tokens.end_in(turn, run_id)
            await self._tokens.add_in(turn, taking.token)
            await self._events.append_in(turn, [tell(run)])
        return run

    async def finish(self, run_id: str, ending: Ending, tell: TellRun, speaker: Speaker = ANYBODY) -> RunRecord:
        """The run has ended so; told again, nothing changes.

        Conflict for another attempt, or another end, and when somebody else speaks for its runner.
        """
        async with self._store.writing("runs") as turn:
            run = _checked(await self._known(turn, run_id), ending.attempt, speaker)
            if run.state in ENDED:
                if (run.state, run.result, run.error) == (ending.state, ending.result, ending.error):
                    return run
                raise Conflict(f"the run is {run.state}", where=f"runs/{run_id}", hint="it has ended in another way")
            return await self._end(turn, run, ending, tell)

    async def append(
        self, run_id: str, told: Telling, tell: TellEvents, speaker: Speaker = ANYBODY
    ) -> tuple[RunEvent, ...]:
        """Keep events of a run, the first of them under this number; those that are kept already are left out.

        Conflict for another attempt, for a gap before the first, for new events of a run that has ended, and when
        somebody else speaks for its runner. TooManyEvents when the run has told enough; it goes on.
        """
        first = told.first
        async with self._store.writing("runs") as turn:
            run = _checked(await self._known(turn, run_id), told.attempt, speaker)
            last = int((await turn.connection.execute(_LAST, {"run": run_id})).scalar_one() or 0)
            if first > last + 1:
                hint = f"send them again from number {last + 1} on"
                raise Conflict(f"events {last + 1} to {first - 1} are missing", where=f"runs/{run_id}", hint=hint)
            new = [
                RunEvent(event.type, event.at, event.data, first + place)
                for place, event in enumerate(told.events)
                if first + place > last
            ]
            if new and run.state not in _GOING_ON:
                raise Conflict(f"the run is {run.state}", where=f"runs/{run_id}", hint="it tells nothing any more")
            if new and new[-1].seq > self.most_events:
                hint = "it goes on; what it tells is not kept any more"
                raise TooManyEvents(f"a run tells at most {self.most_events} events", where=f"runs/{run_id}", hint=hint)
            await self._keep(turn, run_id, new)
            await self._events.append_in(turn, [tell(run, new)] if new else [])
        return tuple(new)

    async def events(
        self, run_id: str, after: int = 0, limit: int = 100, *, newest_first: bool = False
    ) -> tuple[RunEvent, ...]:
        """The events of a run after a number, in order; or the last of them, the newest first."""
        here = (run_events.c.run_id == run_id, run_events.c.seq > after)
        order = run_events.c.seq.desc() if newest_first else run_events.c.seq
        asked = select(run_events).where(*here).order_by(order).limit(limit)
        async with self._store.reading() as connection:
            rows = (await connection.execute(asked)).all()
        return tuple(RunEvent(row.type, row.at, json.loads(row.data), row.seq) for row in rows)

    async def abandoned(self, dead_before: str) -> tuple[RunRecord, ...]:
        """The runs that go on at a runner which was not heard of since then."""
        return await self._rows.runs(_abandoned(dead_before))

    async def lose(self, run: RunRecord, error: Mapping[str, Any], dead_before: str, tell: TellRun) -> RunRecord | None:
        """An abandoned run is lost; None when its owner was heard of, or it was moved: of many, one loses it."""
        async with self._store.writing("runs") as turn:
            here = (runs.c.id == run.id, runs.c.attempt == run.attempt)
            found = (await turn.connection.execute(_abandoned(dead_before).where(*here))).one_or_none()
            if found is None:
                return None
            return await self._end(turn, run, Ending(run.attempt, "lost", error=dict(error)), tell)

    @property
    def _rows(self) -> RunRows:
        return RunRows(self._store)

    async def _end(self, turn: Turn, run: RunRecord, ending: Ending, tell: TellRun) -> RunRecord:
        values = {"result": written(ending.result), "error": written(ending.error)}
        ended = await self._rows.move(turn, run.id, ending.state, values)
        await self._tokens.end_in(turn, run.id)
        await self._events.append_in(turn, [tell(ended)])
        return ended

    async def _keep(self, turn: Turn, run_id: str, new: Sequence[RunEvent]) -> None:
        rows = [
            {"run_id": run_id, "seq": event.seq, "type": event.type, "at": event.at, "data": json.dumps(event.data)}
            for event in new
        ]
        if rows:
            await turn.connection.execute(_ADD, rows)

    async def _known(self, turn: Turn, run_id: str, asking: str | None = None) -> _Known:
        """The run with its owner and with the runner that asks, in one statement; UnknownRun when there is none."""
        row = (await turn.connection.execute(_KNOWN, {"run": run_id, "asking": asking})).one_or_none()
        if row is None:
            raise UnknownRun("there is no such run", where=f"runs/{run_id}")
        *_, owner_seen, owner_subject, seen, subject = row
        return _Known(
            self._rows.run(row),
            None if owner_seen is None else Seen(owner_seen, owner_subject),
            None if seen is None else Seen(seen, subject),
        )


def _check_taking(known: _Known, taking: Taking) -> None:
    run, where = known.run, f"runs/{known.run.id}"
    if taking.after is not None and taking.after != run.attempt:
        raise Conflict(f"the run is in attempt {run.attempt}", where=where, hint="another one was seen")
    if run.state == "pending":
        return
    if run.state != "running":
        raise Conflict(f"the run is {run.state}", where=where, hint="only a run that is pending is begun")
    if run.owner in {None, taking.runner}:
        return
    if taking.instead_of != run.owner:
        raise Conflict(f"the run is executed by runner '{run.owner}'", where=where)
    if known.owner is not None and not known.owner.is_dead(taking.dead_before):
        raise Conflict(f"runner '{run.owner}' is alive", where=where, hint="only a dead one's run is taken over")


def _checked(known: _Known, attempt: int, speaker: Speaker) -> RunRecord:
    """The run, if this one speaks for its runner and for its attempt."""
    run = known.run
    if known.owner is not None and speaker.is_refused_by(known.owner.subject):
        hint = "another token speaks for it"
        raise Conflict(f"the run is executed by runner '{run.owner}'", where=f"runs/{run.id}", hint=hint)
    _check_attempt(run, attempt)
    return run


def _check_attempt(run: RunRecord, attempt: int) -> None:
    if attempt != run.attempt:
        hint = "another runner has taken it over" if run.attempt > attempt else "begin it first"
        raise Conflict(f"the run is in attempt {run.attempt}", where=f"runs/{run.id}", hint=hint)


def _abandoned(dead_before: str):  # noqa: ANN202 - SQLAlchemy's own type of a query
    gone = or_(runners.c.last_seen.is_(None), runners.c.last_seen < dead_before)
    owned = (runs.c.owner.is_not(None), runs.c.state.in_(sorted(_GOING_ON)))
    joined = select(runs).outerjoin(runners, runners.c.id == runs.c.owner)
    return joined.where(*owned, gone).order_by(runs.c.seq)
