"""A team where there is a registry and no ``.squad`` folder: its agents, runs, changes and recorded calls. Reads only.

Agents are the roster, runs the history, pending runs the backlog, the audit of changes the decisions, recorded calls
and the tokens that runs told the metrics. Of a change only the names of what changed are told, never a value.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from outfitter.app.team_calls import CallBook
from outfitter.app.team_catalog import members_of
from outfitter.coordinator import LiveCatalog
from outfitter.errors import UnknownAgent
from outfitter.squad import (
    AgentStatus,
    Backlog,
    BacklogItem,
    Decision,
    Found,
    HistoryEntry,
    Index,
    Member,
    Metrics,
    Told,
    Usage,
)
from outfitter.storage import ENDED, Change, Database, EventRecord, RunRecord

_MOST_CHANGES, _MOST_RUNS, _PAGE = 2000, 500, 500
_LAST_EVENTS = 20
"""A run tells its tokens when it ends."""
_LONGEST_TITLE = 120
_DONE = {
    "create": "Created",
    "update": "Changed",
    "delete": "Deleted",
    "rollback": "Rolled back",
    "approve": "Approved",
}
_OF_ENTRIES = ("squad://roster", "squad://agents", "squad://decisions", "squad://decisions/latest")
_OF_RUNS = ("squad://backlog", "squad://metrics", "squad://roster", "squad://agents")


@dataclass(frozen=True, slots=True)
class RegistryTeam:
    """The agents of a registry as a team. ``live`` is kept up to date by whoever opened it."""

    name: str
    database: Database
    live: LiveCatalog
    calls: CallBook
    _tokens: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """What runs that have ended told of their tokens."""

    async def roster(self) -> Told[tuple[Member, ...]]:
        """Every agent of the registry; active are those of whom a run goes on."""
        running = await self.database.runs.list(states=("running", "stopping"), limit=_MOST_RUNS)
        members = members_of(self.live.catalog.agents.values(), frozenset(run.agent_name for run in running))
        fault = self.live.fault
        return Told(members, () if fault is None else (f"the newest registry is not read: {fault}",))

    async def decisions(self, limit: int | None = None) -> Told[tuple[Decision, ...]]:
        """The changes of the registry, newest first."""
        found, notes = await self._changes(_MOST_CHANGES if limit is None else limit)
        return Told(found, notes)

    async def search(self, query: str, limit: int = 10) -> Told[tuple[Found, ...]]:
        """The changes in which these words stand, best first."""
        found, notes = await self._changes(_MOST_CHANGES)
        answer = Index.of(found).search(query, limit)
        return Told(answer.found, (*answer.notes, *notes))

    async def backlog(self) -> Told[Backlog]:
        """The runs that wait, the oldest first."""
        waiting = await self.database.runs.list(states=("pending",), limit=_MOST_RUNS, oldest_first=True)
        items = (BacklogItem(run.id, _title(run.prompt), run.state, run.agent_name) for run in waiting)
        return Told(Backlog("registry", tuple(items)))

    async def status(self, agent: str) -> Told[AgentStatus]:
        """How an agent does, by its newest run."""
        self._need(agent)
        found = await self.database.runs.list(agent=agent, limit=1)
        if not found:
            return Told(AgentStatus(agent, "idle", source="registry"), ("it has no runs yet",))
        run = found[0]
        status = "idle" if run.state in ENDED else "waiting" if run.state == "pending" else "active"
        seen = run.ended_at or run.started_at or run.created_at
        return Told(AgentStatus(agent, status, _title(run.prompt), run.state, seen, f"registry, run {run.id}"))

    async def history(self, agent: str, limit: int = 100) -> Told[tuple[HistoryEntry, ...]]:
        """The runs of an agent, newest first."""
        self._need(agent)
        found = await self.database.runs.list(agent=agent, limit=limit + 1)
        notes = (f"the newest {limit} runs are shown",) if len(found) > limit else ()
        return Told(tuple(_entry(run) for run in found[:limit]), notes)

    async def metrics(self) -> Told[Metrics]:
        """Runs with their tokens and times, and recorded calls, by agent."""
        used = dict(await self.calls.usage())
        runs = await self.database.runs.list(limit=_MOST_RUNS)
        for run in runs:
            given, taken = await self._tokens_of(run)
            before = used.get(run.agent_name, Usage(run.agent_name))
            used[run.agent_name] = replace(
                before,
                tasks=before.tasks + 1,
                input_tokens=before.input_tokens + given,
                output_tokens=before.output_tokens + taken,
                seconds=round(before.seconds + _seconds(run), 3),
            )
        notes = (f"the newest {_MOST_RUNS} runs are counted",) if len(runs) == _MOST_RUNS else ()
        since = min((moment for moment in (self.calls.since, *(run.created_at for run in runs)) if moment), default="")
        usage = tuple(used[name] for name in sorted(used))
        return Told(Metrics(usage, since, "registry and recorded calls"), notes)

    async def changes(self) -> AsyncGenerator[Sequence[str]]:
        """What may have changed, whenever something happened in the registry, by whichever process."""
        seq = (await self.database.events.span())[1]
        async with aclosing(self.database.events.follow()) as numbers:
            async for newest in numbers:
                uris: dict[str, None] = {}
                while seq < newest and (batch := await self.database.events.after(seq, _PAGE)):
                    uris |= dict.fromkeys(_uris(batch))
                    seq = batch[-1].seq
                if uris:
                    await self.live.reach(await self.database.registry.revision())
                    yield tuple(uris)

    def _need(self, agent: str) -> None:
        if agent not in self.live.catalog.agents:
            raise UnknownAgent(f"there is no agent {ascii(agent)[:80]} in the registry")

    async def _changes(self, limit: int) -> tuple[tuple[Decision, ...], tuple[str, ...]]:
        found: list[Change] = []
        while len(found) < limit:
            last = found[-1].seq if found else 0
            page = await self.database.registry.changes(
                after=last, limit=min(_PAGE, limit - len(found)), newest_first=True
            )
            found += page
            if not page:
                break
        notes = (f"the newest {_MOST_CHANGES} changes are looked at",) if len(found) == _MOST_CHANGES else ()
        return tuple(_decision(change) for change in found), notes

    async def _tokens_of(self, run: RunRecord) -> tuple[int, int]:
        """What a run told of its tokens, in and out; of one that has ended it is remembered."""
        if run.id in self._tokens:
            return self._tokens[run.id]
        last = await self.database.executing.events(run.id, limit=_LAST_EVENTS, newest_first=True)
        found = next((_tokens_in(event.data) for event in last if event.type == "usage"), (0, 0))
        if run.state in ENDED:
            self._tokens[run.id] = found
        return found


def _decision(change: Change) -> Decision:
    title = f"{_DONE.get(change.action, change.action)} {change.kind}/{change.id} (version {change.version})"
    changed = sorted(_changed(change.before or {}, change.after or {}))
    text = f"What changed: {', '.join(changed)}." if changed else "No field changed."
    about = (change.after or change.before or {}).get("description")
    if isinstance(about, str) and about:
        text = f"{text} It is described as: {about}"
    source = f"registry, revision {change.revision}"
    return Decision(f"change-{change.seq}", title, text, change.who, change.at, "field", source=source)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """The names of the fields that differ: values may be secret."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _entry(run: RunRecord) -> HistoryEntry:
    told = run.error if run.error is not None else run.result
    parts = [f"Asked: {run.prompt}", *([] if told is None else [f"{'Error' if run.error else 'Result'}: {told}"])]
    return HistoryEntry("Runs", f"{run.state}: {_title(run.prompt)} ({run.id})", "\n".join(parts), run.created_at)


def _title(prompt: str) -> str:
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"


def _seconds(run: RunRecord) -> float:
    if not run.started_at or not run.ended_at:
        return 0.0
    try:
        return (datetime.fromisoformat(run.ended_at) - datetime.fromisoformat(run.started_at)).total_seconds()
    except ValueError:
        return 0.0


def _tokens_in(data: Mapping[str, Any]) -> tuple[int, int]:
    found = (data.get("input_tokens"), data.get("output_tokens"))
    given, taken = (count if isinstance(count, int) and count > 0 else 0 for count in found)
    return given, taken


def _uris(events: Iterable[EventRecord]) -> Iterable[str]:
    """What stands behind these events."""
    for event in events:
        if event.kind.startswith("entry."):
            yield from _OF_ENTRIES
        elif event.kind.startswith("run."):
            yield from _OF_RUNS
            agent = event.data.get("agent")
            if isinstance(agent, str):
                yield from (f"squad://agents/{agent}/status", f"squad://agents/{agent}/history")
