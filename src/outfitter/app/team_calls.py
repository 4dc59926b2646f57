"""How many calls each agent has made, by the records of calls: read on where it was left, never written."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import anyio.to_thread

from outfitter.app.settings import Settings
from outfitter.squad import Usage
from outfitter.storage import AuditStore, open_audit

MOST = 50_000
"""How far it is read back."""
_PAGE = 5000


@dataclass(slots=True)
class CallBook:
    """The calls of a state folder or of a PostgreSQL, counted by agent. One who asks at a time."""

    settings: Settings
    _store: AuditStore | None = None
    _last: int = -1
    _since: float = 0.0
    _used: dict[str, Usage] = field(default_factory=dict[str, Usage])
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def usage(self) -> Mapping[str, Usage]:
        """What each agent has called."""
        async with self._turn:
            await anyio.to_thread.run_sync(self._read_on)
        return dict(self._used)

    @property
    def since(self) -> str:
        """When the earliest call began that was counted; empty when there is none."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._since)) if self._since else ""

    def close(self) -> None:
        """Let go of the records."""
        if self._store is not None:
            self._store.close()

    def _read_on(self) -> None:
        if self._store is None:
            if self.settings.database is None and not (self.settings.state / "audit.sqlite").exists():
                return  # opening it would make it
            self._store = open_audit(self.settings.state, self.settings.database)
        if self._last < 0:
            self._last = max(0, self._store.last() - MOST)
        while calls := self._store.calls(self._last, _PAGE):
            for call in calls:
                self._count(str(call["agent"]), float(call["duration"]), is_done=call["outcome"] == "done")
            self._since = self._since or float(calls[0]["started_at"])
            self._last = int(calls[-1]["seq"])

    def _count(self, agent: str, seconds: float, *, is_done: bool) -> None:
        used = self._used.get(agent, Usage(agent))
        self._used[agent] = replace(
            used,
            calls=used.calls + 1,
            failed_calls=used.failed_calls + (not is_done),
            seconds=round(used.seconds + seconds, 3),
        )
