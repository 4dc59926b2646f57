"""When a token was last used: noted in memory, written in batches, at most once a minute for each token.

Nobody who comes in waits for it. What cannot be written because the database is away is written later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio

from outfitter.coordinator.access.copy import TokenTable
from outfitter.coordinator.access.times import as_text
from outfitter.errors import StorageUnavailable

EVERY_SECONDS = 60.0
_GATHER_SECONDS = 1.0
_CLOSING_SECONDS = 2.0
_MOST_REMEMBERED = 10_000


@dataclass(slots=True, eq=False)
class LastUsed:
    """The uses that wait to be written. One task runs ``run``."""

    table: TokenTable
    gather_seconds: float = _GATHER_SECONDS
    _waiting: dict[str, float] = field(default_factory=dict[str, float])
    _written: dict[str, float] = field(default_factory=dict[str, float])
    _news: anyio.Event = field(default_factory=anyio.Event)

    def note(self, token_id: str, now: float) -> None:
        """Remember a use; ``now`` is in seconds since 1970. Must not block."""
        if now - self._written.get(token_id, float("-inf")) >= EVERY_SECONDS:
            if len(self._written) >= _MOST_REMEMBERED:
                self._written = {one: at for one, at in self._written.items() if now - at < EVERY_SECONDS}
            self._written[token_id] = now
            self._waiting[token_id] = now
            self._news.set()

    async def run(self) -> None:
        """Write what was noted, until cancelled; then once more."""
        try:
            while True:
                await self._news.wait()
                self._news = anyio.Event()
                await anyio.sleep(self.gather_seconds)
                await self.flush()
        finally:
            with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
                await self.flush()

    async def flush(self) -> None:
        """Write what waits; what cannot be written goes on waiting."""
        while self._waiting:
            token_id, at = next(iter(self._waiting.items()))
            try:
                await self.table.touch(token_id, as_text(at))
            except StorageUnavailable:
                self._news.set()
                return
            if self._waiting.get(token_id) == at:
                del self._waiting[token_id]
