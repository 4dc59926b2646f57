"""What answers look like, and requests that are not documents: the structs from which the OpenAPI text is made.

The documents of document 4 themselves are described in ``documents``; they are read by ``formats``, which knows the
places of their faults.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Json = dict[str, Any]
KindName = Literal["mcp-servers", "capabilities", "agents"]
RoleName = Literal["admin", "editor", "viewer", "runner", "agent"]
StateName = Literal["pending", "running", "stopping", "stopped", "done", "failed", "lost"]
Name = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Ident = Annotated[str, Meta(min_length=1, max_length=128, pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Version = Annotated[int, Meta(ge=1, le=2**31 - 1)]
NextCursor = Annotated[str | None, Meta(description="Ask again with `cursor` set to this; null: there is no more.")]


class UserShown(Struct, frozen=True):
    """An entry that refers to another one."""

    kind: str
    id: str


class UserList(Struct, frozen=True):
    """The entries that refer to one, by kind and id."""

    items: list[UserShown]
    next_cursor: NextCursor = None


class Fault(Struct, frozen=True, omit_defaults=True):
    """One of several things that are wrong."""

    code: str
    detail: str
    hint: str = ""
    where: str = ""
    pointer: str = ""
    line: int | None = None


class Problem(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What went wrong (RFC 9457). `code` is stable; `pointer` and `line` point into the request's body."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
    where: str = ""
    pointer: str = ""
    line: int | None = None
    problems: list[Fault] = []
    users: list[UserShown] = []
    current: str | None = None


class EntryRecord(Struct, frozen=True):
    """A stored document with what is known about it. Sensitive literals are masked."""

    kind: KindName
    id: str
    etag: str
    version: int
    updated_at: str
    updated_by: str
    approved: Annotated[bool | None, Meta(description="Whether a stdio server may be started; null: not a stdio one.")]
    users: Annotated[int, Meta(description="How many entries refer to it.")]
    document: Json


class EntryList(Struct, frozen=True):
    """Entries, by id."""

    items: list[EntryRecord]
    next_cursor: NextCursor = None


class ChangeShown(Struct, frozen=True):
    """Who changed what, when. Sensitive literals are masked."""

    seq: int
    revision: int
    at: str
    who: str
    action: Literal["create", "update", "delete", "rollback", "approve"]
    kind: KindName
    id: str
    version: int
    before: Json | None
    after: Json | None


class ChangeList(Struct, frozen=True):
    """Changes, newest first."""

    items: list[ChangeShown]
    next_cursor: NextCursor = None


class Rollback(Struct, frozen=True, forbid_unknown_fields=True):
    """Put the document of an earlier version back, as a new version."""

    version: Version


class RunShown(Struct, frozen=True, kw_only=True):
    """A run. Its credentials are in no answer."""

    id: str
    type: str
    agent_name: str
    prompt: str
    state: StateName
    session_id: str
    parent_session_id: str | None
    mcp_headers: Json
    created_at: str
    created_by: str
    started_at: str | None
    ended_at: str | None
    result: Any
    error: Any
    owner: Annotated[str | None, Meta(description="The runner that executes it.")]
    attempt: Annotated[int, Meta(description="How often it was begun.")]


class RunList(Struct, frozen=True):
    """Runs, newest first."""

    items: list[RunShown]
    next_cursor: NextCursor = None


class SessionShown(Struct, frozen=True, kw_only=True):
    """What an agent works in."""

    id: str
    agent: str
    run_id: str
    state: StateName
    created_at: str
    ended_at: str | None
    parent_id: str | None


class SessionDetail(SessionShown, frozen=True, kw_only=True):
    """A session with its children, and the plan it was given."""

    children: Annotated[list[str], Meta(description="The ids of the sessions that it started.")]
    plan: Annotated[Json | None, Meta(description="The plan with its provenance; sensitive literals are masked.")]


class SessionList(Struct, frozen=True):
    """Sessions, newest first."""

    items: list[SessionShown]
    next_cursor: NextCursor = None


class CallShown(Struct, frozen=True, kw_only=True):
    """A tool call as the gateway recorded it. Arguments and result are there only where they are kept, redacted."""

    seq: int
    call_id: str
    started_at: Annotated[float, Meta(description="Seconds since 1970.")]
    duration: float
    bytes_in: int
    bytes_out: int
    agent: str
    token_id: str
    run_id: str
    server: str
    tool: str
    shown: Annotated[str, Meta(description="The name under which the agent saw the tool.")]
    decision: str
    rule: str
    outcome: str
    code: str
    lane: str
    digest: str
    trace_id: str
    span_id: str
    parent_id: str
    arguments: Any
    result: Any


class CallList(Struct, frozen=True):
    """Calls, in the order that was asked for."""

    items: list[CallShown]
    next_cursor: NextCursor = None


class EventShown(Struct, frozen=True):
    """Something that happened. It holds names and states, never a value."""

    seq: int
    at: str
    kind: str
    subject: str
    data: Json


class TokenAsked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A token to make. One of the role `agent` names its agent, and may be bound to one of its servers."""

    role: RoleName
    label: Annotated[str, Meta(max_length=100)] = ""
    agent: Name | None = None
    server: Name | None = None
    run_id: Ident | None = None
    expires_in: Annotated[float, Meta(gt=0, le=10 * 366 * 86400, description="Seconds.")] | None = None


class TokenShown(Struct, frozen=True, kw_only=True):
    """What is kept of a token: never the token."""

    id: str
    role: str
    label: str
    agent: str | None
    server: str | None
    run_id: str | None
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None


class TokenMade(TokenShown, frozen=True, kw_only=True):
    """A new token, in clear for this once."""

    token: str


class TokenList(Struct, frozen=True):
    """Every token there is."""

    items: list[TokenShown]
    next_cursor: NextCursor = None


class ChangeAsked(Struct, frozen=True, forbid_unknown_fields=True):
    """A change to try: a document to put there, or null to take the entry away."""

    kind: KindName
    id: Name
    document: Json | None


class WhatIf(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Changes to try, and for whom: nothing is stored."""

    agent_name: Name
    changes: Annotated[list[ChangeAsked], Meta(max_length=100)] = []
    run: Annotated[Json | None, Meta(description="A run request, as `POST /runs` takes it.")] = None


class WhatIfShown(Struct, frozen=True):
    """The explanation before and after the changes; where there is none, the problems."""

    before: Json
    after: Json


# ── queries ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
Cursor = Annotated[str, Meta(max_length=200, pattern="^[A-Za-z0-9._~=-]*$", description="`next_cursor` of a list.")]
Limit = Annotated[int, Meta(ge=1, le=500, description="How many at most.")]
Word = Annotated[str, Meta(max_length=200, pattern=_PRINTABLE)]
LIMIT = 100


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """No parameter at all."""


class Paged(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A list in pieces."""

    cursor: Cursor = ""
    limit: Limit = LIMIT


class EntriesQuery(Paged, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which entries."""

    q: Annotated[
        str,
        Meta(max_length=200, pattern=_PRINTABLE, description="Only those in whose id, name or description it stands."),
    ] = ""


class EntryQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How one entry is shown."""

    detail: Annotated[bool, Meta(description="The record around the document too.")] = False


class BlueprintQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How an agent is shown."""

    explain: Annotated[bool, Meta(description="Where each value came from, and what it overruled.")] = False


class DeleteQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How an entry is deleted."""

    force: Annotated[bool, Meta(description="Also when others refer to it; their runs are then refused.")] = False


class RunsQuery(Paged, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which runs."""

    agent: Word = ""
    state: StateName | UnsetType = UNSET
    order: Literal["newest", "oldest"] = "newest"


class SessionsQuery(Paged, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which sessions."""

    agent: Word = ""
    state: StateName | UnsetType = UNSET


class CallsWanted(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What chooses calls."""

    agent: Word = ""
    server: Word = ""
    tool: Word = ""
    decision: Word = ""
    outcome: Word = ""
    run: Annotated[str, Meta(max_length=200, pattern=_PRINTABLE, description="The id of a run.")] = ""
    since: Annotated[str, Meta(max_length=40, description="A moment in ISO 8601; calls that began then or later.")] = ""
    until: Annotated[str, Meta(max_length=40, description="A moment in ISO 8601; calls that began before it.")] = ""


class CallsQuery(CallsWanted, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which calls."""

    cursor: Cursor = ""
    limit: Limit = LIMIT
    order: Literal["oldest", "newest"] = "oldest"


class EventsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """From where on."""

    after: (
        Annotated[int, Meta(ge=0, le=2**53, description="As `Last-Event-ID`, for those who cannot set it.")] | UnsetType
    ) = UNSET
