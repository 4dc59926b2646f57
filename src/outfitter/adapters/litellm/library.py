"""How is LiteLLM loaded, and what does it leave behind? Quietly, and nothing.

Loaded as it comes, it fetches a table of prices from the network, reads a ``.env`` file and prints advice. It keeps
HTTP clients of a loop that has ended and the records of calls that nobody waits for. Whoever has loaded LiteLLM already
keeps it as it is.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel

from outfitter.errors import Unavailable

_LIBRARY = "litellm"
_RECORDS = "litellm.litellm_core_utils.logging_worker"
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
_LEAVE_SECONDS = 5.0
"""How long LiteLLM's records of the calls, and its clients, are waited for."""


def load() -> ModuleType:
    """LiteLLM; Unavailable where it is not installed."""
    if sys.modules.get(_LIBRARY) is not None:
        return sys.modules[_LIBRARY]
    with _environment(_QUIET):
        try:
            library = importlib.import_module(_LIBRARY)
        except ImportError:
            raise Unavailable("LiteLLM is not installed", hint="pip install 'outfitter[litellm]'") from None
    vars(library).update(telemetry=False, suppress_debug_info=True)
    return library


@contextmanager
def _environment(wanted: dict[str, str]) -> Generator[None]:
    """What is not set by the user is set for the time of the block."""
    missing = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


@dataclass(slots=True)
class _Loop:
    """Who uses LiteLLM in one loop, and which clients were there before."""

    before: frozenset[str]
    users: int = 0


class _Stays:
    """The evaluations that use LiteLLM, by loop: its clients are shared in a loop, and the last one closes them."""

    def __init__(self) -> None:
        """Nobody uses it."""
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()

    @asynccontextmanager
    async def stay(self, library: ModuleType) -> AsyncGenerator[None]:
        """Use LiteLLM in this loop; what it opened for the loop meanwhile is closed when the last user leaves."""
        loop = asyncio.get_running_loop()
        with self._lock:
            mine = self._loops.setdefault(loop, _Loop(frozenset(_keys(library, loop))))
            mine.users += 1
        try:
            yield
        finally:
            with anyio.move_on_after(_LEAVE_SECONDS, shield=True):
                await _records_written(loop)
            mine.users -= 1
            if not mine.users:
                with self._lock:
                    del self._loops[loop]
                with anyio.move_on_after(_LEAVE_SECONDS, shield=True):
                    await _close(library, [key for key in _keys(library, loop) if key not in mine.before])


def _keys(library: ModuleType, loop: asyncio.AbstractEventLoop) -> list[str]:
    """Under which keys LiteLLM keeps the clients of this loop."""
    tail = f"-{id(loop)}"
    return [key for key in library.in_memory_llm_clients_cache.cache_dict if key.endswith(tail)]


async def _close(library: ModuleType, keys: list[str]) -> None:
    kept = library.in_memory_llm_clients_cache
    clients = [kept.cache_dict[key] for key in keys]
    for key in keys:
        kept.delete_cache(key)
    for client in clients:
        closing: object = getattr(client, "close", lambda: None)()
        if inspect.isawaitable(closing):
            await closing


async def _records_written(loop: asyncio.AbstractEventLoop) -> None:
    """Wait until LiteLLM has told its callbacks of every call; otherwise Python warns of a coroutine left alone."""
    await anyio.lowlevel.checkpoint()  # the record of the last call is a task that has not begun
    worker: Any = getattr(sys.modules.get(_RECORDS), "GLOBAL_LOGGING_WORKER", None)
    if getattr(worker, "_bound_loop", None) is loop:
        await worker.flush()


STAYS = _Stays()
"""One for the process, as the clients that it counts users of are LiteLLM's for the process."""
