"""Home: what there is, how it goes, and what needs somebody's attention."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from outfitter.errors import Forbidden
from outfitter.telemetry import UpstreamFigures, read_upstreams

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_MINUTES = 30
_MOST_CALLS = 200
_GOOD = "done"
_HALF, _MOST = 0.5, 0.95


@dataclass(frozen=True, slots=True)
class Traffic:
    """The calls of the last minutes in figures."""

    calls: int
    errors: int
    p50: float | None
    p95: float | None
    by_minute: tuple[int, ...]
    by_agent: tuple[tuple[str, int], ...]
    is_part: bool
    """Whether there were more calls than were looked at."""

    @property
    def error_share(self) -> str:
        """How many of a hundred went wrong."""
        return f"{100 * self.errors / self.calls:.1f} %" if self.calls else "–"


async def show(page: Page) -> Response:
    """The first page."""
    servers = await page.api.get("/mcp-servers", limit=_MOST_CALLS)
    agents = await page.api.get("/agents", limit=_MOST_CALLS)
    calls = await _calls(page)
    upstreams = await upstreams_of(page)
    runs = await page.api.get("/runs", limit=8)
    changes = await page.api.get("/changes", limit=8)
    return page.render(
        "home.html",
        command="outfitter status",
        servers=servers["items"],
        agents=agents["items"],
        traffic=None if calls is None else traffic_of(calls["items"], time.time(), is_part=bool(calls["next_cursor"])),
        runs=runs["items"],
        changes=changes["items"],
        upstreams=upstreams,
        attention=_attention(servers["items"], agents["items"], upstreams),
    )


async def _calls(page: Page) -> dict[str, Any] | None:
    """The newest calls; None for somebody who may not see calls."""
    since = datetime.fromtimestamp(time.time() - _MINUTES * 60, UTC).isoformat()
    try:
        return await page.api.get("/calls", order="newest", limit=_MOST_CALLS, since=since)
    except Forbidden:
        return None


async def upstreams_of(page: Page) -> dict[str, UpstreamFigures]:
    """How each server does that somebody has wanted since the gateway began; none for those who may not see figures."""
    try:
        answer = await page.api.ask("GET", "/metrics", {})
    except Forbidden:
        return {}
    return read_upstreams(answer.content.decode())


def traffic_of(calls: Sequence[Mapping[str, Any]], now: float, *, is_part: bool = False) -> Traffic:
    """These calls in figures, the minutes oldest first."""
    times = sorted(call["duration"] for call in calls)
    minutes: dict[int, int] = defaultdict(int)
    for call in calls:
        minutes[min(_MINUTES - 1, int((now - call["started_at"]) // 60))] += 1
    return Traffic(
        calls=len(calls),
        errors=sum(call["outcome"] != _GOOD for call in calls),
        p50=times[int(len(times) * _HALF)] if times else None,
        p95=times[int(len(times) * _MOST)] if times else None,
        by_minute=tuple(minutes[place] for place in reversed(range(_MINUTES))),
        by_agent=tuple(Counter(call["agent"] for call in calls).most_common(6)),
        is_part=is_part,
    )


def _attention(
    servers: Sequence[Mapping[str, Any]],
    agents: Sequence[Mapping[str, Any]],
    upstreams: Mapping[str, UpstreamFigures],
) -> list[tuple[str, str, str]]:
    """What waits for somebody: kind of page, name, why."""
    known = {one["id"] for one in servers}
    found = [
        ("servers", name, f"it has been out of use for {one.out_for:.0f} s")
        for name, one in upstreams.items()
        if one.out_for is not None and name in known
    ]
    found += [("servers", one["id"], "its program waits for approval") for one in servers if one["approved"] is False]
    found += [("agents", one["id"], "its executor waits for approval") for one in agents if one["approved"] is False]
    found += [("servers", one["id"], "no agent uses it") for one in servers if not one["users"]]
    return found
