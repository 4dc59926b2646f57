"""Runs and sessions of the team: started, listed, stopped, and the plan that each session was given.

A run is resolved when it is made, under its parent's stored plan, and stored with its session in one transaction: what
is refused leaves nothing behind. Its credentials stay in memory. Executing runs is the runner's affair.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import anyio

from outfitter.basics import Secret, SecretRef, quote
from outfitter.catalog import Budgets
from outfitter.coordinator.credentials import CredentialBook
from outfitter.coordinator.listing import check_limit, is_plain, read_number
from outfitter.coordinator.live import LiveCatalog
from outfitter.coordinator.plans import depth_of, read_plan, write_plan
from outfitter.coordinator.sensitive import is_sensitive
from outfitter.coordinator.shown import show_run, tell_run
from outfitter.coordinator.starting import (
    Asked,
    Fetch,
    check_depth,
    faults_now,
    read_asked,
    resolve_run,
    resume_run,
    secrets_of,
)
from outfitter.coordinator.values import Author, Page, RunFilter, ShownRun, ShownSession
from outfitter.errors import (
    AlreadyExists,
    Conflict,
    InvalidRun,
    OutfitterError,
    StorageUnavailable,
    UnknownRun,
    UnknownSession,
)
from outfitter.formats import pointer
from outfitter.resolution import RUN_ID, SESSION_ID, RunPlan, explain
from outfitter.storage import ENDED, RunRecord, RunState, SessionRecord
from outfitter.storage import Runs as RunStore

_ANY = RunFilter()
_PAUSE = 1.0
_AS_NOW = ("budgets", "records", "tool_search", "result_limit", "client_approvals")
"""What holds for a run as its agent has it now, and not as it was when the run began."""
_GOING_ON: frozenset[RunState] = frozenset({"running", "stopping"})
_STOPS: tuple[tuple[RunState, RunState], ...] = (("pending", "stopped"), ("running", "stopping"))


@dataclass(frozen=True, slots=True)
class _Above:
    """What a new session stands below: its parent's plan, how deep that is, and the credentials in it."""

    plan: RunPlan | None = None
    depth: int = 0
    secrets: frozenset[Secret] = frozenset()


@dataclass(frozen=True, slots=True)
class RunOutfit:
    """What a run is connected with: its blank plan with the credentials that are held, and what fills the rest.

    ``faults`` says which of its servers are not connected, and why.
    """

    plan: RunPlan
    runtime: Mapping[str, str]
    faults: Mapping[str, OutfitterError]
    above: tuple[tuple[str, Budgets], ...] = ()
    """The runs that it stands below, the nearest first, and the budgets of their agents as they are now."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The use cases of runs and sessions."""

    _store: RunStore
    _live: LiveCatalog
    _fetch: Fetch | None = None
    _book: CredentialBook = field(default_factory=CredentialBook)
    holder: str | None = None
    """Where credentials are held that are given here, for other processes on the same database."""
    clock: Callable[[], float] = time.monotonic

    async def start(self, document: object, who: Author) -> ShownRun:
        """Resolve and store a run with its session; Refused with all problems, and nothing is left behind."""
        asked = read_asked(document)
        if asked.type == "resume_session":
            return await self._resume(asked, who)
        run = asked.named(asked.run.run_id or _new_id("run"), asked.run.session_id or _new_id("session"))
        above = await self._above(asked.parent_session_id)
        catalog = (await self._live.newest()).catalog
        plan = await resolve_run(catalog, run, above.plan, self._fetch)
        written = write_plan(plan, secrets_of(run) | above.secrets, above.depth)
        record = _record(asked, who, plan, run.session_id or "")
        ids = (record.session_id, record.agent_name, record.id, record.created_at)
        session = SessionRecord(*ids, written.document, asked.parent_session_id, sealed=written.sealed)
        return await self._add(record, session, written.held)

    async def get(self, run_id: str) -> ShownRun:
        """One run; UnknownRun when there is none."""
        return show_run(await self._run(run_id))

    async def list(self, wanted: RunFilter = _ANY, *, cursor: str | None = None, limit: int = 100) -> Page[ShownRun]:
        """Runs, newest first unless the filter says otherwise; a cursor holds for one order."""
        check_limit(limit)
        last = read_number(cursor)
        states: tuple[RunState, ...] = () if wanted.state is None else (wanted.state,)
        if not (is_plain(wanted.agent) and is_plain(wanted.session_id)):
            return Page(())
        found = await self._store.list(
            agent=wanted.agent,
            states=states,
            session_id=wanted.session_id,
            last=last,
            limit=limit + 1,
            oldest_first=wanted.oldest_first,
        )
        return Page(tuple(show_run(run) for run in found[:limit]), _following(found, limit))

    async def stop(self, run_id: str, who: Author) -> ShownRun:
        """Ask a run to end: a pending one is stopped at once, a running one is stopping; Conflict when it has ended."""
        run = await self._run(run_id)
        for before, after in _STOPS:
            try:
                return await self._move(run_id, {before}, after, who.name)
            except Conflict:
                run = await self._run(run_id)  # it was in another state, or has moved on meanwhile
        if run.state != "stopping":
            hint = "only a run that goes on can be stopped"
            raise Conflict(f"the run is {run.state}", where=f"runs/{run_id}", hint=hint)
        return show_run(run)

    async def session(self, session_id: str) -> ShownSession:
        """One session with its parent, its children and its plan explained; UnknownSession when there is none."""
        record = await self._session(session_id)
        children = tuple(child.id for child in await self._store.children(session_id))
        plan = explain(self._plan(record)).to_json()
        return replace(_show_session(record), children=children, plan=plan)

    async def need_session(self, session_id: str, agent: str) -> None:
        """UnknownSession unless it is one of this agent: who may not use it does not hear that there is one."""
        if (await self._session(session_id)).agent != agent:
            raise _no_session(session_id)

    async def sessions(
        self, wanted: RunFilter = _ANY, *, cursor: str | None = None, limit: int = 100
    ) -> Page[ShownSession]:
        """Sessions, newest first, without plans."""
        check_limit(limit)
        before = read_number(cursor)
        if not is_plain(wanted.agent):
            return Page(())
        found = await self._store.sessions(agent=wanted.agent, state=wanted.state, before=before, limit=limit + 1)
        return Page(tuple(_show_session(record) for record in found[:limit]), _following(found, limit))

    async def plan_of(self, session_id: str) -> RunPlan:
        """The blank plan of a session, with the credentials that are still held: for whoever connects."""
        return self._plan(await self._session(session_id))

    async def outfit_of(self, run_id: str) -> RunOutfit:
        """What a run that is executed now is connected with; UnknownRun when it is not begun, or has ended."""
        run = await self._run(run_id)
        session = await self._session(run.session_id)
        catalog = self._live.catalog
        agent = catalog.agents.get(run.agent_name)
        if run.state not in _GOING_ON or session.run_id != run_id or agent is None:
            raise UnknownRun(f"run {quote(run_id)} is not executed now")
        plan = self._plan(session)
        now = {name: getattr(agent, name) for name in _AS_NOW}
        runtime = {SESSION_ID: session.id, RUN_ID: run_id, **run.given}
        above = await self._runs_above(session)
        return RunOutfit(replace(plan, agent=replace(plan.agent, **now)), runtime, faults_now(plan, catalog), above)

    async def _runs_above(self, session: SessionRecord) -> tuple[tuple[str, Budgets], ...]:
        """Who pays too for what a session uses; a session that is not kept any more has nothing to pay with."""
        found: list[tuple[str, Budgets]] = []
        while session.parent_id is not None:
            parent = await self._store.session(session.parent_id)
            if parent is None:
                break
            agent = self._live.catalog.agents.get(parent.agent)
            if agent is not None:
                found.append((parent.run_id, agent.budgets))
            session = parent
        return tuple(found)

    async def holder_of(self, *, run_id: str | None = None, session_id: str | None = None) -> str | None:
        """Where the credentials of a run, or of the run of a session, are held; None when there are none to hold."""
        if session_id is not None:
            run_id = (await self._session(session_id)).run_id
        run = await self._run(run_id or "")
        return None if run.state in ENDED else run.holder

    async def run(self) -> None:
        """Follow the runs until cancelled: the credentials of one that another process has ended are forgotten."""
        async for _ in self._store.follow():
            while not await self._forget_ended():  # noqa: ASYNC110 - a database does not say when it is back
                await anyio.sleep(_PAUSE)

    async def _forget_ended(self) -> bool:
        """Whether the database could be asked which runs have ended."""
        held = self._book.runs(self.clock())
        if not held:
            return True
        try:
            # As for the catalog: a read that is cut off leaves the driver's thread behind.
            with anyio.CancelScope(shield=True):
                for run_id in await self._store.ended(held):
                    self._book.drop(run_id)
        except StorageUnavailable:
            return False
        return True

    async def _resume(self, asked: Asked, who: Author) -> ShownRun:
        """A new run in a session that has come to rest: its plan stays, its credentials are given again."""
        if asked.run.session_id is None:
            raise InvalidRun("'session_id' is missing", hint="name the session to go on with").under("session_id")
        record = await self._session(asked.run.session_id)
        if record.state not in ENDED:
            hint = "stop its run first"
            raise Conflict(f"the session is {record.state}", where=f"sessions/{record.id}", hint=hint)
        if asked.parent_session_id not in {None, record.parent_id}:
            raise InvalidRun("a session keeps its parent").under("parent_session_id")
        run = asked.named(asked.run.run_id or _new_id("run"), record.id)
        plan = read_plan(record.plan, {})
        held = await resume_run((await self._live.newest()).catalog, run, plan, self._fetch)
        again = replace(asked, parent_session_id=record.parent_id)
        return await self._add(_record(again, who, replace(plan, run_id=run.run_id), record.id), None, held)

    async def _above(self, parent_id: str | None) -> _Above:
        if parent_id is None:
            return _Above()
        record = await self._session(parent_id)
        if record.state in {"stopping", "stopped"}:
            raise Conflict(f"the parent session is {record.state}", where=f"sessions/{parent_id}")
        depth = depth_of(record.plan) + 1
        check_depth(depth)
        return _Above(self._plan(record), depth, frozenset(self._held(record).values()))

    def _plan(self, record: SessionRecord) -> RunPlan:
        return replace(read_plan(record.plan, self._held(record)), run_id=record.run_id)

    def _held(self, record: SessionRecord) -> Mapping[SecretRef, Secret]:
        """The credentials of a session's run; none once it has ended, whoever ended it."""
        if record.state in ENDED:
            self._book.drop(record.run_id)
        return self._book.of(record.run_id, self.clock())

    async def _add(
        self, record: RunRecord, session: SessionRecord | None, held: Mapping[SecretRef, Secret]
    ) -> ShownRun:
        """Store a run; its credentials are there before anybody can see it, and gone when it is not stored."""
        now = self.clock()
        if record.id in self._book.runs(now):  # what another run was given is neither replaced nor dropped below
            raise AlreadyExists("a run of this id exists", where=f"runs/{record.id}")
        self._book.hold(record.id, held, now)
        kept = replace(record, holder=self.holder if held else None)
        try:
            stored = await self._store.add(kept, session, tell_run(record.created_by, "created"))
        except BaseException:
            self._book.drop(record.id)
            raise
        return show_run(stored)

    async def _move(self, run_id: str, before: set[RunState], after: RunState, who: str) -> ShownRun:
        record = await self._store.set_state(run_id, before, after, tell=tell_run(who))
        if record.state in ENDED:
            self._book.drop(record.id)
        return show_run(record)

    async def _run(self, run_id: str) -> RunRecord:
        found = await self._store.get(run_id) if is_plain(run_id) else None
        if found is None:
            raise UnknownRun(f"no run {quote(run_id)}")
        return found

    async def _session(self, session_id: str) -> SessionRecord:
        found = await self._store.session(session_id) if is_plain(session_id) else None
        if found is None:
            raise _no_session(session_id)
        return found


def _no_session(session_id: str) -> UnknownSession:
    return UnknownSession(f"no session {quote(session_id)}")


def _record(asked: Asked, who: Author, plan: RunPlan, session_id: str) -> RunRecord:
    """The run as it is stored; the values of sensitive headers are sealed, whatever they look like."""
    run = asked.run
    headers = {alias: dict(settings) for alias, settings in run.mcp_headers.items()}
    sealed = frozenset(
        pointer((alias, name))
        for alias, settings in headers.items()
        for name, value in settings.items()
        if value is not None and is_sensitive(name, plan.servers[alias].header_schema)
    )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    head = (plan.run_id or "", asked.type, run.agent_name, run.prompt, session_id, now, who.name)
    return RunRecord(*head, headers, asked.parent_session_id, sealed=sealed)


def _show_session(record: SessionRecord) -> ShownSession:
    ids = (record.id, record.agent, record.run_id)
    return ShownSession(*ids, record.state, record.created_at, record.ended_at, record.parent_id)


def _following(found: Sequence[RunRecord | SessionRecord], limit: int) -> str | None:
    return str(found[limit - 1].seq) if len(found) > limit else None


def _new_id(what: str) -> str:
    return f"{what}-{uuid.uuid4().hex}"
