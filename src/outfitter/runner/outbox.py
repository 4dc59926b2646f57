"""The events of one run on their way: written to a file at once, sent in order, each exactly once.

The file outlives the coordinator's absence and the runner's death (not the machine's): whoever opens it again goes on
behind the last event that was acknowledged, and one that was sent but not acknowledged is ignored over there. The first
line says which number the first event has. A line that was cut off by death is not an event.
"""

from __future__ import annotations

import errno
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

from outfitter.errors import Invalid, StorageUnavailable, TooManyEvents
from outfitter.runner.desk import patiently
from outfitter.runner.texts import MOST_ERROR, cut, event_data, event_type

_log = logging.getLogger(__name__)
_BATCH_BYTES, _BATCH_EVENTS = 900 * 1024, 500
MOST_BYTES = 256 * 1024 * 1024
"""Of one run's events; more are dropped, and one last event says so."""
_FULL, _REFUSED = "outfitter.events_dropped", "outfitter.event_refused"
_PIECE, _MOST_HEAD = 1024 * 1024, 4096


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
        try:
            return cls._read(path, run_id, first, handle)
        except OSError as error:
            os.close(handle)
            raise StorageUnavailable(f"the events of a run cannot be kept: {error.strerror}") from None

    @classmethod
    def _read(cls, path: Path, run_id: str, first: int, handle: int) -> Outbox:
        with path.open("rb") as file:
            head = file.readline(_MOST_HEAD)
            found = _head_of(head) if head.endswith(b"\n") else None
        if found is None:
            os.ftruncate(handle, 0)
            head, found = msgspec.json.encode(_Head(first)) + b"\n", _Head(first)
            _write(handle, head, 0)
        count = _acknowledged(_note_of(path))
        sent, size = _scan(path, len(head), max(0, count - found.first))
        os.ftruncate(handle, size)  # an event that was cut off
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
        line = _event(kind, data) + b"\n"
        try:
            _write(self._file, line, self._size)
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
            try:
                await self._send(sender, attempt, lines, [msgspec.Raw(line) for line in lines])
            except TooManyEvents as error:  # the run goes on, and is not heard of any more until its end
                _log.warning("no more events of run %s are sent: %s", self.run_id, error)
                self._is_full, self._sent_bytes = True, self._size
            except Invalid:  # one of them; the others are not lost with it
                for line in lines:
                    await self._send_alone(sender, attempt, line)

    async def _send_alone(self, sender: Sender, attempt: int, line: bytes) -> None:
        """Send one event; one that is refused leaves its number to another that says so."""
        try:
            await self._send(sender, attempt, [line], [msgspec.Raw(line)])
        except Invalid as error:
            _log.warning("event %d of run %s was refused: %s", self._next, self.run_id, error)
            told = {"bytes": len(line), "why": cut(str(error), MOST_ERROR)}
            await self._send(sender, attempt, [line], [msgspec.Raw(_event(_REFUSED, told))])

    async def _send(self, sender: Sender, attempt: int, lines: list[bytes], events: list[msgspec.Raw]) -> None:
        """Send these events for these lines, and note that it is done."""
        await patiently(lambda: sender.send(self.run_id, attempt, self._next, events))
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

    @staticmethod
    def remove(path: Path) -> None:
        """Remove the file of a run that has ended, however large it is; nothing when there is none."""
        for one in (path, _note_of(path)):
            with suppress(OSError):
                one.unlink(missing_ok=True)


def _event(kind: str, data: Mapping[str, Any]) -> bytes:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return msgspec.json.encode({"type": event_type(kind) or "event", "at": now, "data": event_data(data)})


def _write(handle: int, line: bytes, size: int) -> None:
    """Append a whole line to a file of this size, or nothing: a full disk may take a part of it."""
    if os.write(handle, line) < len(line):
        os.ftruncate(handle, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _scan(path: Path, start: int, count: int) -> tuple[int, int]:
    """Where so many lines from the start on are over, and where the last whole line is."""
    sent = end = at = start
    with path.open("rb") as file:
        file.seek(start)
        while piece := file.read(_PIECE):
            found = piece.count(b"\n")
            if count and found <= count:
                count -= found
                sent = at + piece.rfind(b"\n") + 1 if found else sent
            elif count:
                sent, count = at + _after_lines(piece, count), 0
            end = at + piece.rfind(b"\n") + 1 if found else end
            at += len(piece)
    return sent, end


def _after_lines(piece: bytes, count: int) -> int:
    """Behind so many lines."""
    place = 0
    for _ in range(count):
        place = piece.index(b"\n", place) + 1
    return place


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
