"""Which servers that an SDK connects itself fail their calls? Known by what the SDK says; after a few, they rest.

Servers that Outfitter connects are watched by ``upstream``; here only texts are known. What the model is told of an
outage is ``calls.tell_outage``, as everywhere.
"""

from __future__ import annotations

import logging
import re
import time

from outfitter.calls import tells_outage
from outfitter.errors import UpstreamDown, UpstreamLost

_log = logging.getLogger(__name__)
_LOST = re.compile(
    r"(connection|transport) (closed|error|refused|reset)|not connected|ECONN|EPIPE|socket|fetch failed|timed? ?out|"
    r"unable to connect|session (not found|expired|terminated)|HTTP 5\d\d",
    re.IGNORECASE,
)
_MOST_FAILURES = 3
_REST_SECONDS = 60.0


class Rests:
    """How the servers of one evaluation stand, by their names."""

    def __init__(self) -> None:
        """Nothing has failed yet."""
        self._failures: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def refusal(self, name: str) -> UpstreamDown | None:
        """Why this server is not asked now, if it is not."""
        left = self._left(name)
        if left <= 0:
            return None
        return UpstreamDown(f"it failed {_MOST_FAILURES} times", retry_after=left, where=f"server '{name}'")

    def note(self, name: str, said: str | None) -> UpstreamLost | None:
        """Note how a call of this server ended; the error when it was the server that failed, and not the tool.

        A gateway that tells of an outage is there itself: that is no failure of its own.
        """
        if said is None or _LOST.search(said) is None or tells_outage(said):
            self._failures.pop(name, None)
            return None
        self._failures[name] = self._failures.get(name, 0) + 1
        if self._failures[name] >= _MOST_FAILURES:
            self._failures.pop(name)
            self._until[name] = time.monotonic() + _REST_SECONDS
        _log.warning("adapters.mcp_failed: server '%s': %s", name, said)
        lost = UpstreamLost(said, may_have_run=True, where=f"server '{name}'")
        lost.retry_after = max(0.0, self._left(name))
        return lost

    def _left(self, name: str) -> float:
        return self._until.get(name, 0.0) - time.monotonic()
