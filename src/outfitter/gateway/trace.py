"""W3C trace context: whose trace a call belongs to, and what its server is told.

The caller's ``traceparent`` is read from the request's ``_meta``, else from its header. The server gets a child of it;
a caller that gives none starts none. The header is remembered per request by ``gate``.
"""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
arrived_with: ContextVar[str | None] = ContextVar("arrived_with", default=None)
"""The ``traceparent`` header of the request that this task answers."""


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


def continue_trace(given: object) -> Trace | None:
    """A child of the caller's span; None when the caller gave none, or something else."""
    found = _PARENT.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        return None
    return Trace(found[1], found[2], secrets.token_hex(8), found[3])
