"""Figures as pictures: where the bars and lines of a chart stand. ``charts.html`` draws them, with a table.

Coordinates are those of a picture 600 wide and 120 high, whatever its size on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 600.0, 120.0
_GAP = 0.2


@dataclass(frozen=True, slots=True)
class Bar:
    """One piece of time: how many calls, and of them those that went wrong, from the bottom."""

    x: float
    width: float
    height: float
    bad_height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Calls over time as bars, and how long they took as two lines."""

    bars: tuple[Bar, ...]
    p50: str
    p95: str
    most_calls: int
    longest: float


@dataclass(frozen=True, slots=True)
class Span:
    """A call on the time axis of those around it; shares of a hundred."""

    left: float
    width: float
    call: Mapping[str, Any]
    is_this: bool


def chart_of(pieces: Sequence[Mapping[str, Any]]) -> Chart:
    """The chart of the pieces that ``/call-figures`` tells."""
    most = max([one["calls"] for one in pieces], default=0)
    longest = max([one["p95"] or 0.0 for one in pieces], default=0.0)
    step = WIDTH / max(len(pieces), 1)
    bars = tuple(
        Bar(
            round(place * step + step * _GAP / 2, 2), round(step * (1 - _GAP), 2),
            _height(one["calls"], most), _height(one["errors"], most),
        )
        for place, one in enumerate(pieces)
    )  # fmt: skip
    return Chart(bars, _line(pieces, "p50", step, longest), _line(pieces, "p95", step, longest), most, longest)


def _height(count: int, most: int) -> float:
    return round(HEIGHT * count / most, 2) if most else 0.0


def _line(pieces: Sequence[Mapping[str, Any]], name: str, step: float, longest: float) -> str:
    """The points of a line as SVG writes a path; it breaks where there was no call."""
    words: list[str] = []
    is_open = False
    for place, one in enumerate(pieces):
        value = one[name]
        if value is None:
            is_open = False
            continue
        x, y = round((place + 0.5) * step, 2), round(HEIGHT - (HEIGHT - 4) * value / (longest or 1.0) - 2, 2)
        words.append(f"{'L' if is_open else 'M'}{x} {y}" + ("" if is_open else "h.01"))
        is_open = True
    return "".join(words)


def spans_of(calls: Sequence[Mapping[str, Any]], this: int) -> list[Span]:
    """Calls on one axis from the first beginning to the last end, in the order in which they began."""
    first = min(call["started_at"] for call in calls)
    last = max(call["started_at"] + call["duration"] for call in calls)
    whole = max(last - first, 1e-6)
    return [
        Span(
            round(100 * (call["started_at"] - first) / whole, 3),
            round(max(100 * call["duration"] / whole, 0.2), 3),
            call,
            call["seq"] == this,
        )
        for call in sorted(calls, key=lambda call: call["started_at"])
    ]
