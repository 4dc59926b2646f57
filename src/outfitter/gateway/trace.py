"""W3C trace context: whose trace a call belongs to, and what its server is told.

The caller's ``traceparent`` is read from the request's ``_meta``, else from its header. The server gets a child of it,
with the ``tracestate`` that came beside it; a caller that gives none starts none. The headers of a request are
remembered by ``gate``.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
arrived_with: ContextVar[tuple[str | None, str | None]] = ContextVar("arrived_with", default=(None, None))
"""The headers ``traceparent`` and ``tracestate`` of the request that this task answers."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One call's span in a caller's trace."""

    trace_id: str
    parent_id: str
    span_id: str
    flags: str

    @property
    def traceparent(self) -> str:
        """What the server is told."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def join_trace(meta: Mapping[str, Any]) -> tuple[Trace, dict[str, Any]] | None:
    """A child of the caller's span, and the ``_meta`` that tells the server of it; None when the caller has none."""
    trace = continue_trace(meta.get("traceparent"))
    if trace is not None:
        return trace, {**meta, "traceparent": trace.traceparent}
    parent, state = arrived_with.get()
    trace = continue_trace(parent)
    if trace is None:
        return None
    # What other tracers have noted belongs to the parent it came with.
    kept = {key: value for key, value in meta.items() if key != "tracestate"}
    noted = {"tracestate": state} if state else {}
    return trace, {**kept, "traceparent": trace.traceparent, **noted}


def continue_trace(given: object) -> Trace | None:
    """A child of the caller's span; None when the caller gave none, or something else."""
    found = _PARENT.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        return None
    return Trace(found[1], found[2], secrets.token_hex(8), found[3])
