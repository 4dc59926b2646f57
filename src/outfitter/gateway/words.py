"""What is said to one client, in order: notifications, questions, and the last word.

``Words`` are heard once. A ``Replay`` keeps the last of them, each with a number, for a client that comes back.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from outfitter.upstream import Message

_MOST_WAITING = 1024
_MOST_KEPT = 256


@dataclass(frozen=True, slots=True)
class Final:
    """The last word of an answer: the response, and the status it has if nothing was said before."""

    message: Message
    status: int = 200


@dataclass(slots=True, eq=False)
class Words:
    """A bounded queue for one task that listens. A client that does not keep up hears nothing more."""

    is_closed: bool = False
    _waiting: deque[Message | Final] = field(default_factory=deque["Message | Final"])
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def say(self, word: Message | Final) -> None:
        """Add a word; must not block. The last word always finds room."""
        if self.is_closed:
            return
        if len(self._waiting) >= _MOST_WAITING and not isinstance(word, Final):
            self.close()
            return
        self._waiting.append(word)
        self._changed.set()

    def close(self) -> None:
        """Say nothing more."""
        self.is_closed = True
        self._changed.set()

    async def hear(self) -> Message | Final | None:
        """The next word; None when there will be none."""
        while not self._waiting:
            if self.is_closed:
                return None
            self._changed = anyio.Event()
            await self._changed.wait()
        return self._waiting.popleft()


class Teller(Protocol):
    """Where an answer, and what comes before it, is said."""

    def say(self, word: Message | Final) -> None:
        """Add a word; must not block."""
        ...


@dataclass(slots=True, eq=False)
class Replay:
    """The numbered words of one stream. Its reader may go and come back; what it misses meanwhile is kept, bounded."""

    number: int
    is_closed: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """The work that is told of; ended when nobody comes back."""
    _kept: deque[tuple[int, Message | Final]] = field(
        default_factory=lambda: deque["tuple[int, Message | Final]"](maxlen=_MOST_KEPT)
    )
    _last: int = 0
    _turn: int = 0
    _is_read: bool = False
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def say(self, word: Message | Final) -> None:
        """Add a word; must not block. The last word ends the stream."""
        if not self.is_closed:
            self._last += 1
            self._kept.append((self._last, word))
            self.is_closed = isinstance(word, Final)
            self._tell()

    def pause(self) -> None:
        """Let the reader go when it has heard everything; it comes back for the rest."""
        self._turn += 1
        self._is_read = False
        self._tell()

    def close(self) -> None:
        """Say nothing more."""
        self.is_closed = True
        self._tell()

    def begin(self) -> int:
        """A reader comes, instead of the last one: its turn."""
        self._turn += 1
        self._is_read = True
        self._tell()
        return self._turn

    def leave(self, turn: int) -> None:
        """A reader goes; nothing when it is not its turn any more."""
        if self._turn == turn:
            self.pause()

    async def wait_for_reader(self) -> bool:
        """Wait until somebody reads, or until the stream ends."""
        while not (self._is_read or self.is_closed):
            await self._changed.wait()
        return True

    async def wait_closed(self) -> None:
        """Wait until the stream has ended."""
        while not self.is_closed:
            await self._changed.wait()

    async def hear(self, after: int, turn: int) -> tuple[int, Message | Final] | None:
        """The next word after a number; None when there is none, or when the reader is to go."""
        while True:
            if self._kept and self._kept[-1][0] > after:
                return self._kept[max(0, after + 1 - self._kept[0][0])]
            if self.is_closed or self._turn != turn:
                return None
            await self._changed.wait()

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
