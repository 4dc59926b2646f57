"""What pages look at often, over HTTP: the registry at a glance, names in it, and recorded calls in figures."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio.to_thread
from msgspec import Meta, Struct

from outfitter.coordinator.api.answers import answer, shown
from outfitter.coordinator.api.calls import wanted_of
from outfitter.coordinator.api.models import CallsWanted, NoQuery
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.coordinator.figures import Figures, traffic_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office

_SPAN_SECONDS = 1800.0
_MOST_CALLS = 20_000


class NoteShown(Struct, frozen=True):
    """An entry that waits for somebody, and why. `code` is stable."""

    kind: str
    id: str
    code: str
    detail: str


class OverviewShown(Struct, frozen=True):
    """How many entries of each kind there are, and the first of those that wait for somebody."""

    counts: dict[str, int]
    notes: list[NoteShown]
    waiting: Annotated[int, Meta(description="How many notes there are in all.")]


class NamedShown(Struct, frozen=True):
    """An entry, or a tool that the entry of a server lists."""

    kind: Literal["mcp-servers", "capabilities", "agents", "tools"]
    name: str
    server: Annotated[str, Meta(description="Of a tool: whose it is.")]


class FoundShown(Struct, frozen=True):
    """What was found, kind by kind; of the tools those whose name begins with what was asked for come first."""

    items: list[NamedShown]


class FindQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to find."""

    q: Annotated[str, Meta(max_length=200, description="In id, name or description, of tools in the name.")] = ""
    limit: Annotated[int, Meta(ge=1, le=500, description="How many of each kind at most.")] = 20


class FiguresQuery(CallsWanted, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Figures of which calls. Without `since` those of the last 30 minutes."""

    pieces: Annotated[int, Meta(ge=1, le=240, description="Into how many pieces the time is cut.")] = 30


class FiguresShown(Struct, frozen=True):
    """Calls of one span of time; seconds, null without any call. An error is every outcome but `done`."""

    at: Annotated[float, Meta(description="When it begins, in seconds since 1970.")]
    calls: int
    errors: int
    p50: float | None
    p95: float | None


class CountShown(Struct, frozen=True):
    """How many calls an agent made, or a server had."""

    name: str
    calls: int


class TrafficShown(Struct, frozen=True, kw_only=True):
    """Recorded calls in figures."""

    since: Annotated[float, Meta(description="Seconds since 1970.")]
    until: float
    total: FiguresShown
    pieces: list[FiguresShown]
    agents: list[CountShown]
    servers: list[CountShown]
    is_part: Annotated[bool, Meta(description=f"Whether there are more calls than the newest {_MOST_CALLS:,}.")]


async def _overview(office: Office, _asked: Asked[NoQuery]) -> Response:
    found = await office.coordinator.overviews.get()
    notes = [shown(note, NoteShown) for note in found.notes]
    return answer(OverviewShown({**found.counts}, notes, found.waiting))


async def _find(office: Office, asked: Asked[FindQuery]) -> Response:
    found = office.coordinator.overviews.find(asked.query.q, asked.query.limit)
    return answer(FoundShown([shown(one, NamedShown) for one in found]))


async def _figures(office: Office, asked: Asked[FiguresQuery]) -> Response:
    store, now = office.coordinator.audit, time.time()
    wanted = wanted_of(asked.query, asked.agent)
    until = float(wanted.get("until", now))
    wanted["since"] = wanted.get("since", repr(until - _SPAN_SECONDS))
    since = min(float(wanted["since"]), until)
    timings: list[Any] = []
    if store is not None:
        async with office.reading:
            timings = await anyio.to_thread.run_sync(store.timings, wanted, _MOST_CALLS + 1)
    found = traffic_of(timings[:_MOST_CALLS], since, until, asked.query.pieces)
    told = TrafficShown(
        since=since, until=until, total=_shown(found.total), pieces=[_shown(one) for one in found.pieces],
        agents=[CountShown(*one) for one in found.agents], servers=[CountShown(*one) for one in found.servers],
        is_part=len(timings) > _MOST_CALLS,
    )  # fmt: skip
    return answer(told)


def _shown(figures: Figures) -> FiguresShown:
    return shown(figures, FiguresShown)


ROUTES: tuple[Route[Any], ...] = (
    Route("GET", "/overview", "How many entries there are, and which wait for somebody", _overview,
          Answer(model=OverviewShown), "registry.read"),
    Route("GET", "/find", "Entries and the tools that they list, by a text in their names", _find,
          Answer(model=FoundShown), "registry.read", FindQuery),
    Route("GET", "/call-figures", "Recorded calls in figures: how many, errors, how long, over time", _figures,
          Answer(model=TrafficShown), "calls.read", FiguresQuery, concerns="query"),
)  # fmt: skip
