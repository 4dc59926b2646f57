"""How the orchestrator asks the coordinator: again and again while it is away, for a while.

Everything asked here may be asked twice: runs are made under an id of ours. Neighbour: ``rest`` asks once.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
import anyio
import msgspec

from outfitter.errors import ProtocolViolation, Unavailable
from outfitter.runner.rest import Query, RestClient

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CoordinatorClient:
    """The coordinator. ``patience`` is for how many seconds an answer is tried for while it is away."""

    rest: RestClient
    patience: float = 30.0

    async def get(self, path: str, query: Query | None = None) -> Json:
        """What is at a path; NotFound when nothing is."""
        return await self._ask("GET", path, None, query)

    async def post(self, path: str, body: Mapping[str, object]) -> Json:
        """What came of a request that may be repeated."""
        return await self._ask("POST", path, body, None)

    def stream(self, path: str) -> AbstractAsyncContextManager[aiohttp.StreamReader]:
        """An answer that goes on; Unavailable when it cannot be had now, or breaks."""
        return self.rest.stream(path)

    async def _ask(self, method: str, path: str, body: object, query: Query | None) -> Json:
        pause, ends = _FIRST_PAUSE, anyio.current_time() + self.patience
        while True:
            try:
                return _object(await self.rest.ask(method, path, body, query))
            except Unavailable:
                if anyio.current_time() + pause > ends:
                    raise
            await anyio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _object(content: bytes) -> Json:
    try:
        found: Any = msgspec.json.decode(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ProtocolViolation("the coordinator answered what is no JSON object")
    return cast("Json", found)
