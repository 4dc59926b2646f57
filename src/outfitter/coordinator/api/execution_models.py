"""What runners send and get: the structs of the routes that execute runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from outfitter.coordinator.api.models import Ident, Json, Limit, NextCursor, RunShown

Attempt = Annotated[int, Meta(ge=1, le=2**31 - 1, description="The attempt that the runner was given.")]
Seen = Annotated[
    int, Meta(ge=0, le=2**31 - 1, description="The attempt that was seen last, 0: none; 409 when it is another one.")
]
Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
EventType = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[\x20-\x7e]+$")]
LONGEST_EVENT = 64 * 1024
_HTTP = r"^https?://[\x21-\x7e]+$"


class RunnerValues(Struct, frozen=True, forbid_unknown_fields=True):
    """What only the runner knows, for placeholders of the run's servers."""

    orchestrator_mcp_url: Annotated[str, Meta(max_length=2048, pattern=_HTTP)] | UnsetType = UNSET


class BeginAsked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A runner takes a run, or goes on with one of its own. `instead_of` is the owner that is dead."""

    runner: Ident
    values: RunnerValues = RunnerValues()
    instead_of: Ident | None = None
    attempt: Seen | None = None


class GatewayShown(Struct, frozen=True, kw_only=True):
    """Where the run's servers are, and the token that opens them as long as the run goes on."""

    url: str
    servers: dict[str, str]
    token: str
    expires_at: str


class WorkOrderShown(Struct, frozen=True, kw_only=True):
    """What the runner is to do."""

    run: RunShown
    attempt: int
    agent: Json
    gateway: GatewayShown


class RunEventAsked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something that a run tells."""

    type: EventType
    at: Annotated[datetime, Meta(tz=True)]
    data: Json = {}


class EventsAsked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a run tells, in order; `first` is the number of the first of them."""

    attempt: Attempt
    first: Number
    events: Annotated[list[RunEventAsked], Meta(max_length=10_000)]


class RunEventShown(Struct, frozen=True, kw_only=True):
    """Something that a run has told."""

    seq: int
    type: str
    at: str
    data: Json


class RunEventList(Struct, frozen=True):
    """What a run has told, in order."""

    events: list[RunEventShown]
    next: Annotated[int | None, Meta(description="Ask again with `after` set to this; null: there is no more.")] = None


class RunEventsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """From where on; or the last ones."""

    after: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: Limit = 100
    order: Annotated[
        Literal["oldest", "newest"], Meta(description="newest: the last ones, the newest first; `next` is null then.")
    ] = "oldest"


class RunErrorShown(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a run failed."""

    code: Annotated[str, Meta(min_length=1, max_length=100)]
    message: Annotated[str, Meta(max_length=64 * 1024)]


class FinishAsked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a run ended."""

    attempt: Attempt
    state: Literal["done", "failed", "stopped", "lost"]
    result: Any = None
    error: RunErrorShown | None = None


class RunnerAsked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A runner says that it is alive, and what it does."""

    capacity: Annotated[int, Meta(ge=0, le=10_000)] = 1
    running: Annotated[list[Ident], Meta(max_length=10_000)] = []
    executors: Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=100)] = []


class BeatShown(Struct, frozen=True):
    """What a runner is told: which of its runs are to stop, and when to come again."""

    stop: list[str]
    seconds: float


class RunnerShown(Struct, frozen=True, kw_only=True):
    """A process that executes runs."""

    id: str
    capacity: int
    running: list[str]
    executors: list[str]
    first_seen: str
    last_seen: str
    is_alive: bool


class RunnerList(Struct, frozen=True):
    """Every runner that was ever heard of."""

    items: list[RunnerShown]
    next_cursor: NextCursor = None
