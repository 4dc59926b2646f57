"""When does what is old go? Now and then: what runs told that ended long ago, and tokens of runs that have ended.

How it is removed is the storage's affair (``storage.Pruning``). The records of calls have a keeper of their own, in the
gateway; both follow the same number of days.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio

from outfitter.errors import StorageUnavailable
from outfitter.storage import Pruning

_log = logging.getLogger("outfitter.coordinator")
_DAY, _FIRST_SECONDS, _AGAIN_SECONDS = 24 * 3600.0, 30.0, 3600.0


@dataclass(frozen=True, slots=True)
class Pruner:
    """Removes what is old until cancelled; after ``keep_days`` what an ended run has told, never without."""

    _old: Pruning
    keep_days: float | None = None
    clock: Callable[[], float] = time.time

    async def run(self) -> None:
        """Look soon after the start, and then every hour."""
        wait = _FIRST_SECONDS
        while True:
            await anyio.sleep(wait)
            wait = _AGAIN_SECONDS
            try:
                await self.prune()
            except StorageUnavailable as error:
                _log.warning("what is old is not removed now: [%s]", error.code)

    async def prune(self) -> int:
        """Remove all that is old, in small turns; how many events of runs went."""
        gone = 1
        while gone:
            gone = await self._old.forget_tokens()
        if self.keep_days is None:
            return 0
        moment = datetime.fromtimestamp(self.clock() - self.keep_days * _DAY, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        place: int | None = 0
        while place is not None:
            some, place = await self._old.forget_events(moment, place)
            gone += some
        return gone
