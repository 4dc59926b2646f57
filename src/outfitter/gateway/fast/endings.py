"""Calls that ended in one turn of the loop: counted and written down with one write, then answered.

The loop hears many servers in one turn, and a write costs the same for one line as for fifty. No answer goes out before
its line is written; where a line cannot be written, its client hears that instead of the answer.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Raw

from outfitter.errors import StorageUnavailable
from outfitter.gateway.faults import UPSTREAM_UNAVAILABLE, Rejected, rpc_error
from outfitter.gateway.recorder import Recorder
from outfitter.gateway.records import PlainLine
from outfitter.policy import Meter, pay

_log = logging.getLogger(__name__)
_UNRECORDED = Rejected("the call was not recorded", rpc_code=UPSTREAM_UNAVAILABLE, data={"code": "not_recorded"})
_encode = msgspec.json.Encoder().encode


class Ended(Protocol):
    """A call whose outcome is known."""

    def answer(self, body: bytes, now: float) -> None:
        """Send the answer; ``now`` is when the outcome was known."""
        ...


class Ending(NamedTuple):
    """A call, its answer and its line."""

    call: Ended
    ident: Raw
    body: bytes
    line: PlainLine
    now: float


class Endings:
    """The calls that have ended and are not answered yet."""

    __slots__ = ("_owed", "_recorder", "_waiting")

    def __init__(self, recorder: Recorder) -> None:
        """None yet."""
        self._recorder = recorder
        self._waiting: list[Ending] = []
        self._owed: dict[Meter, int] = {}
        """How many bytes they have used that are still to be counted, and where."""

    def owe(self, meter: Meter, size: int) -> None:
        """Count so many bytes before the next answers go out."""
        self._owed[meter] = self._owed.get(meter, 0) + size

    def add(self, ending: Ending, *, is_last: bool) -> None:
        """Answer a call as soon as its line is written: now when no other is under way, else with its fellows."""
        waiting = self._waiting
        waiting.append(ending)
        if is_last:
            self._flush()
        elif len(waiting) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        if self._owed:
            self._pay()
        written = self._recorder.record_plain([ending.line for ending in waiting])
        for ending in waiting[:written]:
            ending.call.answer(ending.body, ending.now)
        for ending in waiting[written:]:
            ending.call.answer(
                _encode({"jsonrpc": "2.0", "id": ending.ident, "error": rpc_error(_UNRECORDED)}), ending.now
            )

    def _pay(self) -> None:
        """The calls have happened: what cannot be counted now is told in the log and counted later; answers go out."""
        try:
            pay(self._owed)
        except StorageUnavailable as error:
            _log.error("%d bytes of calls are not counted yet: %s", sum(self._owed.values()), error)
