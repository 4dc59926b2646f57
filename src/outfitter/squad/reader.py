"""How is the team of a ``.squad`` folder? The folder as a ``TeamState``: what its files say.

Files are read in a thread, one question at a time, and remembered while they are the same; nothing is written. A file
that is missing, broken or too large is a note in the answer, never an error. Where the folder is says
``folder_place``; which file answers what, ``reader_files``.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from outfitter.basics import quote, suggest
from outfitter.errors import InvalidName, NotFound, OutfitterError, UnknownAgent
from outfitter.squad.backlog import BacklogSource
from outfitter.squad.folder_place import SquadPlace, find_squad, place_of
from outfitter.squad.histories import History, LogEntry
from outfitter.squad.reader_changes import follow
from outfitter.squad.reader_files import TeamFiles
from outfitter.squad.roster import is_agent_id
from outfitter.squad.search import Index
from outfitter.squad.team import (
    AgentStatus,
    Backlog,
    BacklogItem,
    Decision,
    Found,
    HistoryEntry,
    Member,
    Metrics,
    Told,
    Usage,
)

T = TypeVar("T")
_LOOK_SECONDS = 1.0
_MAX_NOTES = 50


@dataclass(slots=True)
class SquadFolder:
    """The team of a folder. ``backlog_source`` is asked for the backlog before the files are."""

    place: SquadPlace
    backlog_source: BacklogSource | None = None
    look_seconds: float = _LOOK_SECONDS
    """How often ``changes`` looks at the files."""
    _files: TeamFiles = field(init=False)
    _turn: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(1))
    """Who waits for an answer holds no thread; the lock is for those on another loop."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _indexed: tuple[tuple[Decision, ...], Index] | None = None

    def __post_init__(self) -> None:
        """Look at nothing yet."""
        self._files = TeamFiles(self.place)

    @classmethod
    def find(cls, start: str | Path = ".", backlog_source: BacklogSource | None = None) -> SquadFolder:
        """The team of the repository that a folder is in; NotFound when there is none."""
        place = find_squad(start)
        if place is None:
            hint = "run it in a repository with a .squad folder, or name one"
            raise NotFound("there is no .squad folder here or above", where=str(start), hint=hint)
        return cls(place, backlog_source)

    @classmethod
    def at(cls, folder: str | Path, backlog_source: BacklogSource | None = None) -> SquadFolder:
        """The team of exactly this folder."""
        return cls(place_of(Path(folder).absolute()), backlog_source)

    @property
    def name(self) -> str:
        """What the team is called: like the folder that it works in."""
        return self.place.project.name or "squad"

    # ── the port ──

    async def roster(self) -> Told[tuple[Member, ...]]:
        """Everybody of the team who is not retired."""
        return await self._ask(self._roster)

    async def decisions(self, limit: int | None = None) -> Told[tuple[Decision, ...]]:
        """The decisions in force and the pending ones, newest first."""
        return await self._ask(partial(self._decisions, limit))

    async def search(self, query: str, limit: int = 10) -> Told[tuple[Found, ...]]:
        """The decisions, archived ones too, in which these words stand, best first."""
        return await self._ask(partial(self._search, query, limit))

    async def backlog(self) -> Told[Backlog]:
        """What is to be done: from the source, or from the files when there is none or it fails."""
        team = await self.roster()
        notes: tuple[str, ...] = ()
        if self.backlog_source is not None:
            asked = self.backlog_source
            try:
                told = await asked.items([member.id for member in team.value])
            except OutfitterError as error:
                notes = (f"{asked.name} could not be asked ({error}); this is what the files say",)
            else:
                return Told(Backlog(asked.name, told.value), told.notes)
        items, found = await self._ask(self._tasks)
        return Told(Backlog("files", items), (*notes, *found))

    async def status(self, agent: str) -> Told[AgentStatus]:
        """How an agent does, by the team's table and the newest entry of the orchestration log."""
        return await self._ask(partial(self._status, checked(agent)))

    async def history(self, agent: str, limit: int = 100) -> Told[tuple[HistoryEntry, ...]]:
        """What an agent has learned and done, newest first."""
        return await self._ask(partial(self._history, checked(agent), limit))

    async def metrics(self) -> Told[Metrics]:
        """What the orchestration log says was used."""
        return await self._ask(self._metrics)

    async def changes(self) -> AsyncGenerator[Sequence[str]]:
        """The URIs of which something may have changed, whenever it has; meanwhile the next search is prepared."""
        looked: Callable[[], Mapping[str, object]] = self._files.versions
        seen = await self._ask(looked)
        await self._ask(self._index)
        while True:
            await anyio.sleep(self.look_seconds)
            now = await self._ask(looked)
            if now != seen:
                changed = sorted(key for key in seen.keys() | now.keys() if seen.get(key) != now.get(key))
                seen = now
                yield follow(changed)
                await self._ask(self._index)

    # ── in a thread, one at a time ──

    async def _ask(self, question: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(self._alone, question, limiter=self._turn)

    def _alone(self, question: Callable[[], T]) -> T:
        with self._lock:
            return question()

    def _roster(self) -> Told[tuple[Member, ...]]:
        members, notes = self._files.roster()
        return Told(members, self._noted(notes))

    def _noted(self, notes: Sequence[str], *, is_state: bool = False) -> tuple[str, ...]:
        """Each note once, those of the place first, and not too many."""
        place = (*self.place.notes, *(self._files.state_notes() if is_state else ()))
        once = tuple(dict.fromkeys((*place, *notes)))
        return once if len(once) <= _MAX_NOTES else (*once[:_MAX_NOTES], f"and {len(once) - _MAX_NOTES} notes more")

    def _decisions(self, limit: int | None) -> Told[tuple[Decision, ...]]:
        every, notes = self._files.decisions()
        current = tuple(decision for decision in every if not decision.is_archived)
        return Told(current if limit is None else current[: max(0, limit)], self._noted(notes, is_state=True))

    def _search(self, query: str, limit: int) -> Told[tuple[Found, ...]]:
        index, notes = self._index()
        answer = index.search(query, limit)
        return Told(answer.found, self._noted((*answer.notes, *notes), is_state=True))

    def _index(self) -> tuple[Index, tuple[str, ...]]:
        """The index of the decisions as they are now, built when one has changed."""
        every, notes = self._files.decisions()
        if self._indexed is None or self._indexed[0] is not every:
            self._indexed = (every, Index.of(every))
        return self._indexed[1], notes

    def _tasks(self) -> tuple[tuple[BacklogItem, ...], tuple[str, ...]]:
        items, notes = self._files.tasks()
        return items, self._noted(notes, is_state=True)

    def _member(self, agent: str) -> Member:
        members, _ = self._files.roster()
        asked = agent.casefold()
        for member in members:
            if asked in {member.id.casefold(), member.name.casefold()}:
                return member
        hint = suggest(agent, [member.id for member in members])
        raise UnknownAgent(f"there is no agent {quote(agent)} in the team", where=self.name, hint=hint)

    def _status(self, agent: str) -> Told[AgentStatus]:
        member = self._member(agent)
        entries = [entry for entry in self._log() if entry.agent == member.id]
        status = member.status or "unknown"
        if not entries:
            notes = self._noted(("the orchestration log has no entry of this agent",), is_state=True)
            return Told(AgentStatus(member.id, status, source="team.md"), notes)
        last = entries[0]
        told = AgentStatus(member.id, status, last.task, last.outcome, last.moment, last.key)
        return Told(told, self._noted(last.notes, is_state=True))

    def _history(self, agent: str, limit: int) -> Told[tuple[HistoryEntry, ...]]:
        member = self._member(agent)
        found = self._files.history(member)
        notes: tuple[str, ...] = ()
        if found is None:
            found, notes = History(), (f"'{member.id}' has no history yet",)
        shown = found.entries[: max(0, limit)]
        if len(shown) < len(found.entries):
            notes = (*notes, f"the newest {len(shown)} of {len(found.entries)} entries are shown")
        return Told(shown, self._noted((*found.notes, *notes), is_state=True))

    def _log(self) -> list[LogEntry]:
        """The orchestration log, newest first, with the agents' ids as the roster has them."""
        ids = self._files.ids()
        return [replace(entry, agent=ids.get(entry.agent, entry.agent)) for entry in self._files.log()]

    def _metrics(self) -> Told[Metrics]:
        usage: dict[str, Usage] = {}
        entries = self._log()
        for entry in entries:
            so_far = usage.get(entry.agent, Usage(entry.agent))
            usage[entry.agent] = replace(
                so_far,
                tasks=so_far.tasks + 1,
                input_tokens=so_far.input_tokens + entry.input_tokens,
                output_tokens=so_far.output_tokens + entry.output_tokens,
                cost=round(so_far.cost + entry.cost, 6),
            )
        silent = sum(1 for entry in entries if not entry.has_tokens)
        notes = [note for entry in entries for note in entry.notes]
        if silent:
            notes.append(f"{silent} of {len(entries)} entries of the orchestration log tell no tokens")
        since = next((entry.moment for entry in reversed(entries) if entry.moment), "")
        ordered = tuple(usage[agent] for agent in sorted(usage))
        return Told(Metrics(ordered, since, "orchestration-log"), self._noted(notes, is_state=True))


def checked(agent: str) -> str:
    """The name itself when an agent can have it; InvalidName otherwise, before any file is looked at."""
    if not is_agent_id(agent.removeprefix("@").replace(" ", "-")):
        hint = "use a name of squad://roster: letters, digits, '-' and '_', at most 64"
        raise InvalidName(f"{quote(agent)} cannot be an agent's name", hint=hint)
    return agent.removeprefix("@")
