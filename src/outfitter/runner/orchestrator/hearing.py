"""Who is told when a run has ended: one stream of the coordinator's events for all who wait.

An event only wakes; what is true is then asked. So nothing is lost when the stream breaks: after it is back, and every
few seconds, everyone looks again. Without anyone waiting there is no stream.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
import msgspec

from outfitter.errors import OutfitterError
from outfitter.runner.orchestrator.client import CoordinatorClient
from outfitter.upstream import EventParser

_ENDS = frozenset({"run.done", "run.failed", "run.stopped", "run.lost"})
_LOOK_AGAIN = 10.0
_PAUSE = 1.0
_LONGEST_EVENT = 1024 * 1024


class _Data(msgspec.Struct):
    session_id: str = ""


class _Told(msgspec.Struct):
    subject: str = ""
    data: _Data = msgspec.field(default_factory=_Data)


def of_session(session_id: str) -> str:
    """The word for the end of any run of a session."""
    return f"sessions/{session_id}"


@dataclass(slots=True, eq=False)
class Ear:
    """Somebody who waits for one of several things."""

    keys: set[str]
    _heard: anyio.Event = field(default_factory=anyio.Event)

    def wake(self) -> None:
        """Something may have happened."""
        self._heard.set()

    async def wait(self, seconds: float = _LOOK_AGAIN) -> None:
        """Return when something happened since the last time, or it is time to look again."""
        with anyio.move_on_after(min(seconds, _LOOK_AGAIN)):
            await self._heard.wait()
        self._heard = anyio.Event()


@dataclass(slots=True)
class Hearing:
    """The ears of a runner. ``run`` feeds them from the coordinator's stream."""

    client: CoordinatorClient
    _ears: list[Ear] = field(default_factory=list[Ear])
    _wanted: anyio.Event = field(default_factory=anyio.Event)

    @contextmanager
    def listening(self, keys: Iterable[str]) -> Generator[Ear]:
        """An ear for these keys: whatever happens from here on is not missed."""
        ear = Ear(set(keys))
        self._ears.append(ear)
        self._wanted.set()
        try:
            yield ear
        finally:
            self._ears.remove(ear)

    def tell(self, key: str) -> None:
        """Wake those who wait for this."""
        for ear in self._ears:
            if key in ear.keys:
                ear.wake()

    async def run(self) -> None:
        """Follow the stream as long as somebody waits, until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                await self._follow()
            except OutfitterError:
                await anyio.sleep(_PAUSE)
            if not self._ears:
                self._wanted = anyio.Event()

    async def _follow(self) -> None:
        parser = EventParser(_LONGEST_EVENT)
        async with self.client.stream("/events") as stream:
            for ear in self._ears:  # what happened before the stream began is not in it
                ear.wake()
            async for piece in stream.iter_any():
                for event in parser.feed(piece):
                    self._take(event.type, event.data)
                if not self._ears:
                    return

    def _take(self, kind: str, data: bytes) -> None:
        if kind not in _ENDS:
            return
        try:
            told = msgspec.json.decode(data, type=_Told)
        except (msgspec.DecodeError, ValueError):
            return
        self.tell(told.subject)
        self.tell(of_session(told.data.session_id))
