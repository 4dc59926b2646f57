"""Where a record goes: into the journal before the answer goes out, then to the counters and to whoever listens.

The journal fails closed: what cannot be recorded is not answered, and calls are refused before they begin. Counters and
listeners fail open: a listener that does not keep up misses events, and nobody waits for it. From the journal the
records go to the audit database in the background, by one process of all that share it.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from outfitter.errors import OutfitterError
from outfitter.gateway.metrics import Metrics
from outfitter.gateway.records import CallRecord
from outfitter.storage import Journal, SqliteAudit, claim, drain

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode
_MOST_WAITING = 1000
_DRAIN_SECONDS = 0.25


@dataclass(slots=True)
class Recorder:
    """Takes records. Without a journal nothing is kept, which is for tests and benchmarks."""

    journal: Journal | None = None
    metrics: Metrics = field(default_factory=Metrics)
    _listeners: list[deque[CallRecord]] = field(default_factory=list[deque[CallRecord]])

    def prepare(self) -> None:
        """Make sure that a call can be recorded before it begins; StorageUnavailable when it cannot."""
        if self.journal is not None:
            self.journal.make_room()

    def record(self, record: CallRecord) -> None:
        """Write a record down; only after that may its answer go out. StorageUnavailable when it cannot be written."""
        if self.journal is not None:
            self.journal.append(_encode(record) + b"\n")
        self.metrics.count(record)
        for waiting in self._listeners:
            waiting.append(record)

    @contextmanager
    def listening(self) -> Generator[deque[CallRecord]]:
        """The newest records as they come, as long as the block lasts; a slow reader loses the oldest."""
        waiting = deque[CallRecord](maxlen=_MOST_WAITING)
        self._listeners.append(waiting)
        try:
            yield waiting
        finally:
            self._listeners[:] = [one for one in self._listeners if one is not waiting]


@asynccontextmanager
async def open_recorder(state: Path) -> AsyncGenerator[Recorder]:
    """A recorder with its journal and audit database in a folder; what was recorded is in the database at the end."""
    journal = Journal(state / "journal")
    recorder = Recorder(journal)
    pump = _Pump(state)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(pump.run)
            try:
                yield recorder
            finally:
                group.cancel_scope.cancel()
    finally:
        journal.close()
        with anyio.CancelScope(shield=True), anyio.move_on_after(_DRAIN_SECONDS * 20):
            await anyio.to_thread.run_sync(pump.once)
        pump.close()


@dataclass(slots=True)
class _Pump:
    """Moves records from the journal to the audit database."""

    state: Path
    _store: SqliteAudit = field(init=False)
    _lock: int = -1
    _complaint: str = ""

    def __post_init__(self) -> None:
        self._store = SqliteAudit(self.state / "audit.sqlite")

    async def run(self) -> None:
        """Move what has come, several times a second."""
        while True:
            await anyio.to_thread.run_sync(self.once)
            await anyio.sleep(_DRAIN_SECONDS)

    def once(self) -> None:
        """Move what has come, unless another process does; a failure is told once and tried again."""
        try:
            if self._is_ours():
                drain(self.state / "journal", self._store)
            self._complaint = ""
        except (OutfitterError, OSError) as error:
            if str(error) != self._complaint:
                _log.warning("records stay in the journal for now: %s", error)
            self._complaint = str(error)

    def close(self) -> None:
        """Let another process go on."""
        self._store.close()
        if self._lock >= 0:
            os.close(self._lock)

    def _is_ours(self) -> bool:
        if self._lock >= 0:
            return True
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.state / "audit.lock", os.O_RDWR | os.O_CREAT, 0o600)
        if claim(lock):
            self._lock = lock
            return True
        os.close(lock)
        return False
