"""The tools of the squad server: what each takes, what it answers, and how a call becomes an answer. Both only look.

Answers are typed: the schema of each is made from the values here, and what stands in it is marked as others' data.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from outfitter.errors import Invalid, NotFound
from outfitter.squad.server.documents import clean, few_notes, marked
from outfitter.squad.team import AgentStatus, Backlog, Found, Member, TeamState, Told

A = TypeVar("A", bound=Struct)
Json = dict[str, Any]
_MOST_AGENTS, _MOST_ITEMS = 100, 20
_LONGEST_LINE, _LONGEST_TEXT, _LONGEST_QUERY = 300, 2000, 1000


class NoArguments(Struct, forbid_unknown_fields=True):
    """Nothing."""


class SearchArguments(Struct, forbid_unknown_fields=True):
    """What to look for in the decisions."""

    query: Annotated[
        str, Meta(min_length=1, max_length=_LONGEST_QUERY, description="Words; those that stand in a decision count.")
    ]
    limit: Annotated[int, Meta(ge=1, le=50, description="How many to answer at most.")] = 10


class AgentLine(Struct):
    """An agent of the team, and how it does."""

    id: str
    name: str
    role: str
    status: str
    last_task: str
    last_outcome: str
    last_seen: str


class BacklogLine(Struct):
    """Something to be done."""

    id: str
    title: str
    state: str
    assignee: str


class BacklogLines(Struct):
    """What is to be done, as far as it is shown."""

    source: str
    total: int
    items: list[BacklogLine]


class Answer(Struct, kw_only=True):
    """How every answer begins."""

    untrusted: bool
    warning: str
    team: str
    notes: list[str]


class StatusAnswer(Answer, kw_only=True):
    """How the team does."""

    agents: list[AgentLine]
    total_agents: int
    backlog: BacklogLines


class FoundLine(Struct):
    """A decision that was found; in each snippet what matched stands between ** and **."""

    id: str
    title: str
    author: str
    date: str
    source: str
    is_pending: bool
    is_archived: bool
    score: float
    snippets: list[str]
    text: str


class SearchAnswer(Answer, kw_only=True):
    """What was found, best first."""

    decisions: list[FoundLine]


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """A tool: what it says of itself, takes and answers, and who does it."""

    title: str
    about: str
    takes: type[Struct]
    answers: type[Struct]
    handle: Callable[[TeamState, Any], Awaitable[Struct]]

    @property
    def input_schema(self) -> Json:
        """The JSON Schema of its arguments."""
        return _schema_of(self.takes)

    @property
    def output_schema(self) -> Json:
        """The JSON Schema of its answer."""
        return _schema_of(self.answers)

    async def call(self, state: TeamState, arguments: Mapping[str, object]) -> Json:
        """The answer as JSON values; Invalid says what is wrong with the arguments."""
        try:
            asked = msgspec.convert(dict(arguments), self.takes)
        except msgspec.ValidationError as error:
            raise Invalid(f"the arguments do not fit: {error}", hint="see the tool's schema") from None
        return msgspec.to_builtins(await self.handle(state, asked))


def _schema_of(answer: type[Struct]) -> Json:
    """A schema whose root is the object itself, as MCP wants it."""
    definitions = msgspec.json.schema(answer)["$defs"]
    root = definitions.pop(answer.__name__)
    return {**root, "$defs": definitions} if definitions else root


async def _status(state: TeamState, _asked: NoArguments) -> StatusAnswer:
    roster, backlog = await state.roster(), await state.backlog()
    notes, lines = [*roster.notes, *backlog.notes], list[AgentLine]()
    for member in roster.value[:_MOST_AGENTS]:
        told = await _status_of(state, member)
        notes += [note for note in told.notes if note not in notes]
        lines.append(_agent_line(member, told.value))
    if len(lines) < len(roster.value):
        notes.insert(0, f"{len(lines)} of {len(roster.value)} agents are shown; squad://agents has all")
    return StatusAnswer(
        **marked(state.name),
        notes=few_notes(notes),
        agents=lines,
        total_agents=len(roster.value),
        backlog=_backlog_lines(backlog.value),
    )


async def _status_of(state: TeamState, member: Member) -> Told[AgentStatus]:
    try:
        return await state.status(member.id)
    except NotFound:  # gone since the roster was read
        return Told(AgentStatus(member.id, member.status))


def _agent_line(member: Member, status: AgentStatus) -> AgentLine:
    texts = (member.id, member.name, member.role, status.status or member.status)
    last = (status.last_task, status.last_outcome, status.last_seen)
    return AgentLine(*(clean(text, _LONGEST_LINE) for text in (*texts, *last)))


def _backlog_lines(backlog: Backlog) -> BacklogLines:
    items = [
        BacklogLine(*(clean(text, _LONGEST_LINE) for text in (item.id, item.title, item.state, item.assignee)))
        for item in backlog.items[:_MOST_ITEMS]
    ]
    return BacklogLines(backlog.source, len(backlog.items), items)


async def _search(state: TeamState, asked: SearchArguments) -> SearchAnswer:
    told = await state.search(asked.query, asked.limit)
    lines = [_found_line(found) for found in told.value[: asked.limit]]
    return SearchAnswer(**marked(state.name), notes=few_notes(told.notes), decisions=lines)


def _found_line(found: Found) -> FoundLine:
    decision = found.decision
    fields = clean(
        {
            "id": decision.id, "title": decision.title, "author": decision.author, "date": decision.date,
            "source": decision.source, "snippets": found.snippets, "text": decision.text,
        },
        _LONGEST_TEXT,
    )  # fmt: skip
    return FoundLine(
        **fields, is_pending=decision.is_pending, is_archived=decision.is_archived, score=round(found.score, 4)
    )


TOOLS: Mapping[str, ToolEntry] = {
    "squad_status": ToolEntry(
        "How the team does",
        "How the team does: its agents with what each did last, and what is to be done.",
        NoArguments, StatusAnswer, _status,
    ),
    "squad_decision_search": ToolEntry(
        "Search decisions",
        "Search the team's decisions, archived ones too, for words; best first, with what matched.",
        SearchArguments, SearchAnswer, _search,
    ),
}  # fmt: skip
