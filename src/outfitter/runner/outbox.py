"""The events of one run on their way: written to a file at once, sent in order, each exactly once.

The file outlives the coordinator's absence and the runner's death (not the machine's): whoever opens it again goes on
behind the last event that was acknowledged, and one that was sent but not acknowledged is ignored over there. The first
line says which number the first event has. A line that was cut off by death is not an event.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec

from outfitter.errors import StorageUnavailable
from outfitter.runner.desk import patiently
from outfitter.runner.texts import event_data, event_type

_log = logging.getLogger(__name__)
_BATCH_BYTES, _BATCH_EVENTS = 900 * 1024, 500
MOST_BYTES = 256 * 1024 * 1024
"""Of one run's events; more are dropped, and one last event says so."""
_FULL = "outfitter.events_dropped"


class Sender(Protocol):
    """Takes events; see ``Desk.send``."""

    async def send(self, run_id: str, attempt: int, first: int, events: list[msgspec.Raw]) -> None:
        """Hand over events, the first with this number."""
        ...


class _Head(msgspec.Struct, frozen=True):
    first: int


@dataclass(slots=True)
class Outbox:
    """The events of one run. Owner: the task that executes the run; ``send_on`` may run beside it."""

    run_id: str
    path: Path
    first: int
    """The number of the first event in the file."""
    _file: int
    _size: int
    _sent_bytes: int
    _next: int
    """The number of the event that is to be sent next."""
    _is_full: bool = False
    _more: anyio.Event = field(default_factory=anyio.Event)

    @classmethod
    def open(cls, path: Path, run_id: str, first: int = 1) -> Outbox:
        """The outbox of a run as its file has it; a new one begins with this number."""
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise StorageUnavailable(f"the events of a run cannot be kept: {error.strerror}") from None
        head, _, content = path.read_bytes().partition(b"\n")
        found = _head_of(head)
        if found is None:
            os.ftruncate(handle, 0)
            head, content, found = msgspec.json.encode(_Head(first)), b"", _Head(first)
            os.write(handle, head + b"\n")
        start = len(head) + 1
        whole = content.rpartition(b"\n")[0]
        size = start + (len(whole) + 1 if whole else 0)
        os.ftruncate(handle, size)  # an event that was cut off
        count, skipped = _acknowledged(_note_of(path)), 0
        for line in whole.split(b"\n")[: max(0, count - found.first)]:
            skipped += len(line) + 1
        sent = min(start + skipped, size)
        return cls(run_id, path, found.first, handle, size, sent, max(count, found.first))

    @staticmethod
    def exists(path: Path) -> bool:
        """Whether a run has left events here."""
        return path.exists()

    def put(self, kind: str, data: Mapping[str, Any]) -> None:
        """Keep an event; it is cut and made harmless before."""
        if self._is_full:
            return
        if self._size > MOST_BYTES:
            self._is_full = True
            kind, data = _FULL, {"bytes": self._size}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        event = {"type": event_type(kind) or "event", "at": now, "data": event_data(data)}
        line = msgspec.json.encode(event) + b"\n"
        try:
            os.write(self._file, line)
        except OSError as error:
            raise StorageUnavailable(f"an event cannot be kept: {error.strerror}", where=self.run_id) from None
        self._size += len(line)
        self._more.set()

    @property
    def is_sent(self) -> bool:
        """Whether everything has been acknowledged."""
        return self._sent_bytes >= self._size

    async def send_on(self, sender: Sender, attempt: int) -> None:
        """Send events as they come, until cancelled; Conflict when somebody else has taken over the run."""
        while True:
            await self.drain(sender, attempt)
            self._more = anyio.Event()
            if self.is_sent:
                await self._more.wait()

    async def drain(self, sender: Sender, attempt: int) -> None:
        """Send what is there, however long the coordinator is away."""
        while not self.is_sent:
            lines = self._batch()
            events = [msgspec.Raw(line) for line in lines]
            await patiently(lambda: sender.send(self.run_id, attempt, self._next, events))  # noqa: B023 - awaited here
            self._next += len(lines)
            self._sent_bytes += sum(len(line) + 1 for line in lines)
            self._note()

    def _batch(self) -> list[bytes]:
        with self.path.open("rb") as file:
            file.seek(self._sent_bytes)
            content = file.read(min(_BATCH_BYTES, self._size - self._sent_bytes))
        return content.rpartition(b"\n")[0].split(b"\n")[:_BATCH_EVENTS]

    def _note(self) -> None:
        """Note how far it is; a note that is too old does no harm."""
        with suppress(OSError):
            _note_of(self.path).write_text(str(self._next), "ascii")

    def close(self) -> None:
        """Let go of the file, which stays."""
        with suppress(OSError):
            os.close(self._file)

    def remove(self) -> None:
        """Let go of the file and remove it: the run has ended."""
        self.close()
        for path in (self.path, _note_of(self.path)):
            path.unlink(missing_ok=True)


def _note_of(path: Path) -> Path:
    return path.with_suffix(".sent")


def _acknowledged(note: Path) -> int:
    """The number of the first event that was not acknowledged, as far as it was noted."""
    try:
        return int(note.read_text("ascii"))
    except (OSError, ValueError):
        return 0


def _head_of(line: bytes) -> _Head | None:
    try:
        return msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
