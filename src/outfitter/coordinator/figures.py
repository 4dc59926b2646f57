"""Many calls in figures: how many, how many went wrong, how long they took, over time and by agent and server. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Timing: TypeAlias = tuple[float, float, str, str, str]
"""When a call began, how long it took, its outcome, agent and server."""
_GOOD = "done"
_HALF, _MOST = 0.5, 0.95
_NAMES = 8


@dataclass(frozen=True, slots=True)
class Figures:
    """Calls of one span of time; times are seconds, None without any call."""

    at: float
    calls: int
    errors: int
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Calls over a time: all together, piece by piece, and who made and answered most of them."""

    total: Figures
    pieces: tuple[Figures, ...]
    agents: tuple[tuple[str, int], ...]
    servers: tuple[tuple[str, int], ...]


def traffic_of(timings: Sequence[Timing], first: float, last: float, pieces: int) -> Traffic:
    """These calls between two moments, in so many pieces of equal length, the oldest first."""
    width = max(last - first, 1e-3) / pieces
    held: list[list[Timing]] = [[] for _ in range(pieces)]
    for timing in timings:
        held[min(pieces - 1, max(0, int((timing[0] - first) / width)))].append(timing)
    return Traffic(
        _figures(first, timings),
        tuple(_figures(first + place * width, found) for place, found in enumerate(held)),
        _most(agent for _, _, _, agent, _ in timings),
        _most(server for *_, server in timings if server),
    )


def _figures(at: float, timings: Sequence[Timing]) -> Figures:
    times = sorted(duration for _, duration, *_ in timings)
    errors = sum(outcome != _GOOD for _, _, outcome, *_ in timings)
    return Figures(at, len(times), errors, _share(times, _HALF), _share(times, _MOST))


def _share(times: Sequence[float], share: float) -> float | None:
    return times[int(len(times) * share)] if times else None


def _most(names: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(names).most_common(_NAMES))
