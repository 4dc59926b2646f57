"""Where a record goes: into the journal before the answer goes out, then to the counters and to whoever listens.

The journal fails closed: what cannot be recorded is not answered, and calls are refused before they begin. Counters and
listeners fail open: a listener that does not keep up misses events, and nobody waits for it. From the journal the
records go to the audit database in the background, by one process of all that share the folder; while the database is
away they wait in the journal.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from outfitter.basics import Secret
from outfitter.errors import OutfitterError
from outfitter.gateway.metrics import Metrics
from outfitter.gateway.records import CallRecord, PlainLine
from outfitter.storage import AuditStore, Journal, claim, drain, open_audit

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(CallRecord).decode
_MOST_WAITING = 1000
_DRAIN_SECONDS, _MOST_SECONDS = 0.5, 8.0
"""How often records are moved; less and less often while the database is away."""
_END_SECONDS = 5.0
_REMOVE_SECONDS, _REMOVE_FOR = 60.0, 0.2
_REMOVE_AT_A_TIME = 1000
_DAY = 86400.0


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
        self.metrics.count(record.agent, record.server, record.outcome, record.duration)
        for waiting in self._listeners:
            waiting.append(record)

    def record_plain(self, lines: Sequence[PlainLine]) -> int:
        """Write the lines of plain calls down with one write; how many of them are written, the first ones."""
        written = len(lines)
        if self.journal is not None:
            written = self.journal.append_each([each.line for each in lines])
        count = self.metrics.count
        for each in lines[:written]:
            count(each.agent, each.server, each.outcome, each.duration)
        if self._listeners:
            for each in lines[:written]:
                record = _decode(each.line)
                for waiting in self._listeners:
                    waiting.append(record)
        return written

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
async def open_recorder(
    state: Path, *, database: Secret | None = None, keep_days: float | None = None
) -> AsyncGenerator[Recorder]:
    """A recorder with its journal in a folder; what was recorded is in the audit database at the end.

    The database is a file in the same folder, or the PostgreSQL of a URL; after ``keep_days`` records are removed.
    """
    pump = _Pump(state, open_audit(state, database), keep_days)
    journal = Journal(state / "journal")
    recorder = Recorder(journal)
    recorder.metrics.gauges["outfitter_audit_good"] = (
        "1 when records reach the database, 0 while they wait in the journal.", (), lambda: {(): int(pump.is_good)}
    )  # fmt: skip
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(pump.run)
            try:
                yield recorder
            finally:
                pump.stop_at = time.monotonic()
                group.cancel_scope.cancel()
    finally:
        journal.close()
        pump.stop_at = time.monotonic() + _END_SECONDS
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(pump.once)
        pump.close()


@dataclass(slots=True)
class _Pump:
    """Moves records from the journal to the audit database, and removes old ones there."""

    state: Path
    store: AuditStore
    keep_days: float | None = None
    stop_at: float = float("inf")
    """When to leave the rest in the journal, for the next time."""
    _lock: int = -1
    _complaint: str = ""
    _removed_at: float = float("-inf")

    @property
    def is_good(self) -> bool:
        """Whether the last try went well."""
        return not self._complaint

    async def run(self) -> None:
        """Move what has come, again and again."""
        wait = _DRAIN_SECONDS
        while True:
            await anyio.to_thread.run_sync(self.once)
            wait = _DRAIN_SECONDS if self.is_good else min(wait * 2, _MOST_SECONDS)
            await anyio.sleep(wait)

    def once(self) -> None:
        """Move what has come, unless another process does; a failure is told once and tried again."""
        try:
            if self._is_ours():
                drain(self.state / "journal", self.store, lambda: time.monotonic() >= self.stop_at)
                self._remove_old()
            self._complaint = ""
        except (OutfitterError, OSError) as error:
            if str(error) != self._complaint:
                _log.warning("records stay in the journal for now: %s", error)
            self._complaint = str(error)

    def close(self) -> None:
        """Let another process go on."""
        self.store.close()
        if self._lock >= 0:
            os.close(self._lock)

    def _remove_old(self) -> None:
        """Now and then, in small pieces and not for long: new records come first."""
        now = time.monotonic()
        if self.keep_days is None or now < self._removed_at + _REMOVE_SECONDS:
            return
        end, moment = min(now + _REMOVE_FOR, self.stop_at), time.time() - self.keep_days * _DAY
        while time.monotonic() < end:
            if self.store.remove_before(moment, _REMOVE_AT_A_TIME) < _REMOVE_AT_A_TIME:
                self._removed_at = now
                return

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
