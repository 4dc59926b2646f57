"""Home: what there is, how it goes, and what needs somebody's attention. The page follows what happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outfitter.dashboard.charts import chart_of
from outfitter.dashboard.looks import path_part
from outfitter.errors import Forbidden, NotFound
from outfitter.telemetry import UpstreamFigures, read_upstreams

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_NOW_MINUTES = 5
_MOST_SHOWN, _MOST_ASKED = 12, 100
_WORST = ("needs_auth", "down", "degraded", "starting", "ready", "configured")
"""Of several connections to one server, which state is told."""
_UNUSED = "not in use"
_WORDS = {"not_approved": "not approved", "unresolved": "no value", "unused": "unused"}
_PLACES = {"mcp-servers": "servers", "capabilities": "capabilities", "agents": "agents"}


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that waits for somebody: which page, and why."""

    at: str
    name: str
    word: str
    why: str
    tone: str = "warn"


async def show(page: Page) -> Response:
    """The first page."""
    overview = await page.api.get("/overview")
    traffic = await _traffic(page)
    upstreams = await upstreams_of(page)
    runs = await page.api.get("/runs", limit=8)
    changes = await page.api.get("/changes", limit=8)
    attention = [*await _asked(page), *_failing(upstreams), *_notes(overview["notes"])]
    return page.render(
        "home_live.html" if page.is_part else "home.html",
        command="outfitter status",
        counts=overview["counts"],
        traffic=traffic,
        chart=None if traffic is None else chart_of(traffic["pieces"]),
        per_minute=None if traffic is None else _per_minute(traffic["pieces"]),
        error_share=None if traffic is None else _share(traffic["total"]),
        states=_states(upstreams, overview["counts"]["mcp-servers"]),
        attention=attention[:_MOST_SHOWN],
        waiting=len(attention) - len(overview["notes"]) + overview["waiting"],
        upstreams=upstreams,
        runs=runs["items"],
        changes=changes["items"],
    )


async def _traffic(page: Page) -> dict[str, Any] | None:
    """The calls of the last half hour by the minute; None for somebody who may not see calls."""
    try:
        return await page.api.get("/call-figures", pieces=30)
    except Forbidden:
        return None


async def upstreams_of(page: Page) -> dict[str, UpstreamFigures]:
    """How each server does that somebody has wanted since the gateway began; none for those who may not see figures."""
    try:
        answer = await page.api.ask("GET", "/metrics", {})
    except Forbidden:
        return {}
    return read_upstreams(answer.content.decode())


async def _asked(page: Page) -> list[Attention]:
    """Calls and definitions of tools about which a person is asked; none for those who may not see them."""
    found: list[Attention] = []
    for path, state, what in (
        ("approvals", "waiting", "waiting for approval"),
        ("pins", "pending", "of tools to be approved"),
    ):
        try:
            items = (await page.api.get(f"/{path}", state=state, limit=_MOST_ASKED))["items"]
        except (Forbidden, NotFound):
            continue
        if items:
            count = f"{len(items)}{'+' if len(items) == _MOST_ASKED else ''}"
            name = f"{count} {'calls' if path == 'approvals' else 'definitions'}"
            found.append(Attention(f"/ui/{path}", name, "asked", what, "live"))
    return found


def _per_minute(pieces: Sequence[Mapping[str, Any]]) -> str:
    """Calls a minute, over the last few."""
    return f"{sum(one['calls'] for one in pieces[-_NOW_MINUTES:]) / _NOW_MINUTES:.1f}"


def _share(total: Mapping[str, Any]) -> str:
    """How many of a hundred went wrong."""
    return f"{100 * total['errors'] / total['calls']:.1f} %" if total["calls"] else "–"


def state_of(figures: UpstreamFigures) -> str:
    """The state of a server: of several connections the worst."""
    found = [state for state in _WORST if figures.states.get(state)]
    if figures.out_for is not None and (not found or found[0] != "needs_auth"):
        return "down"
    return found[0] if found else next(iter(figures.states), _UNUSED)


def _states(upstreams: Mapping[str, UpstreamFigures], servers: int) -> list[tuple[str, int]]:
    """How many servers are in each state, the worst first."""
    counts = Counter(state_of(one) for one in upstreams.values())
    rest = servers - sum(counts.values())
    if rest > 0:
        counts[_UNUSED] += rest
    order = {state: place for place, state in enumerate(_WORST)}
    return sorted(counts.items(), key=lambda one: order.get(one[0], len(order)))


def _failing(upstreams: Mapping[str, UpstreamFigures]) -> list[Attention]:
    """Servers that cannot be used now."""
    found: list[Attention] = []
    for name, one in upstreams.items():
        state = state_of(one)
        if state == "needs_auth":
            found.append(Attention(_server(name), name, "needs auth", "it wants other credentials"))
        elif state == "down":
            since = "" if one.out_for is None else f"out of use for {one.out_for:.0f} s"
            again = "" if one.next_try is None else f"tried again in {one.next_try:.0f} s"
            why = ", ".join(part for part in (since, again) if part) or "it does not answer"
            found.append(Attention(_server(name), name, "down", why, "bad"))
    return found


def _notes(notes: Sequence[Mapping[str, Any]]) -> list[Attention]:
    return [
        Attention(
            f"/ui/{_PLACES[one['kind']]}/{path_part(one['id'])}",
            one["id"],
            _WORDS.get(one["code"], "problem"),
            one["detail"],
            _tone(one),
        )
        for one in notes
    ]


def _server(name: str) -> str:
    return f"/ui/servers/{path_part(name)}"


def _tone(note: Mapping[str, Any]) -> str:
    return "quiet" if note["code"] == "unused" else "warn" if note["code"] in _WORDS else "bad"
