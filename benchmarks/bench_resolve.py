"""Resolving an agent with 20 servers, 5 capabilities and 200 headers, against a deep copy of the same input."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from benchmarks.measure import Ratio, compare
from outfitter.catalog import (
    Agent,
    Capability,
    Catalog,
    HeaderSchema,
    HeaderSettings,
    MCPServer,
    RunRequest,
    ServerEntry,
    ServerRef,
)
from outfitter.resolution import resolve

_HEADERS = 10
_LIMIT = 3.0
_LINEAR = 13.0


def make_input(servers: int) -> tuple[Agent, Catalog, RunRequest]:
    """An agent with so many servers of ten headers each, every header given by three levels and some by the run."""
    entries = [
        ServerEntry(
            MCPServer.http(f"server-{number}", f"http://localhost:{9000 + number % 1000}/mcp"),
            header_schema={f"X-Header-{h}": HeaderSchema(description="a header") for h in range(_HEADERS)},
            default_headers=_settings("default"),
        )
        for number in range(servers)
    ]
    capabilities = [
        Capability(
            f"capability-{c}", servers={e.id: ServerRef(e.id, _settings(f"capability-{c}")) for e in entries[c::5]}
        )
        for c in range(5)
    ]
    uses = {entry.id: ServerRef(headers=_settings("agent")) for entry in entries}
    agent = Agent("agent", capabilities=tuple(c.name for c in capabilities), servers=uses)
    run = RunRequest("agent", mcp_headers={entry.id: {"X-Header-0": "run"} for entry in entries})
    return agent, Catalog.of(entries, capabilities, [agent]), run


def _settings(value: str) -> HeaderSettings:
    return {f"X-Header-{h}": f"{value}-{h}" for h in range(_HEADERS)}


def measure() -> Iterator[Ratio]:
    """The ratio of the issue, and growth with ten times the servers."""
    small, large = make_input(20), make_input(200)
    resolved, copied = compare(lambda: resolve(*small), lambda: copy.deepcopy(small))
    yield Ratio(
        "resolve 20 servers, 5 capabilities, 200 headers", resolved, copied, "copy.deepcopy of the input", _LIMIT
    )
    ten, one = compare(lambda: resolve(*large), lambda: resolve(*small), rounds=7)
    yield Ratio("resolve 200 servers (10 ×)", ten, one, "resolve 20 servers", _LINEAR)
