"""What a gateway's page of figures says of each server, read back: for ``outfitter status`` and for the dashboard."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

_STATE = re.compile(r'outfitter_upstreams\{server="([^"]*)",state="([^"]*)"(?:,worker="\d+")?\} (\d+)')
_STANDING = re.compile(r'outfitter_upstream_(\w+)\{server="([^"]*)"(?:,worker="\d+")?\} (\S+)')


@dataclass(frozen=True, slots=True)
class UpstreamFigures:
    """One server, over all connections of all workers; times are seconds."""

    states: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many connections are in each state."""
    uptime: float | None = None
    """The share of the time in which it was wanted, since the gateway began, that it could be used."""
    failures: int = 0
    out_for: float | None = None
    """How long it has been out of use; None when it is not."""
    next_try: float | None = None
    """When it is tried again; None when it does not rest."""


def read_upstreams(text: str) -> dict[str, UpstreamFigures]:
    """Every server that the page names."""
    states: dict[str, dict[str, int]] = defaultdict(dict)
    for server, state, count in _STATE.findall(text):
        states[server][state] = states[server].get(state, 0) + int(count)
    standings: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, server, value in _STANDING.findall(text):
        standings[server][name].append(float(value))
    return {server: _figures(states[server], standings[server]) for server in sorted({*states, *standings})}


def _figures(states: Mapping[str, int], standing: Mapping[str, list[float]]) -> UpstreamFigures:
    ready, out = sum(standing.get("ready_seconds", ())), sum(standing.get("out_seconds", ()))
    return UpstreamFigures(
        states,
        ready / (ready + out) if ready + out > 0 else None,
        int(sum(standing.get("failures", ()))),
        max(standing.get("out_for_seconds", ()), default=None),
        min(standing.get("next_try_seconds", ()), default=None),
    )
