"""Where a session's values are: slices of state that a transaction can undo, and logs that only grow.

One lock guards both. A change inside a ``Transaction`` belongs to it, also in tasks and threads that were started with
its context; after the transaction was undone such a change is refused. Events and reducers are the session's.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Self

from outfitter.errors import Conflict
from outfitter.session.journal import Change, Journal, Owner, Values, heir_of


class SlicePolicy(StrEnum):
    """Whether a slice is undone with a failed call."""

    STATE = "state"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a session at one moment; it does not change."""

    session_id: str
    slices: Mapping[type, Values]


@dataclass(slots=True, eq=False)
class Transaction:
    """A block whose changes are kept or undone together: undone when it raises, or when it is told to."""

    store: Store = field(repr=False)
    owner: Owner | None = field(default=None, init=False, repr=False)
    around: Transaction | None = field(default=None, init=False, repr=False)
    """The one whose block this one stands in, of whichever session."""
    _token: Token[Transaction | None] | None = field(default=None, init=False, repr=False)

    def __enter__(self) -> Self:
        """Begin: from here on, changes made in this context belong to it."""
        if self.owner is not None:
            raise Conflict("a transaction has one block", hint="begin another with session.transaction()")
        self.around = _current.get()
        self.owner = self.store.begin()
        self._token = _current.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Keep what was changed; undo it when the block raised."""
        if self._token is not None:
            _current.reset(self._token)
        self._end(keep=kind is None)

    def rollback(self) -> None:
        """Take back what was changed in it; later changes in it are refused."""
        self._end(keep=False)

    def _end(self, *, keep: bool) -> None:
        if self.owner is not None:
            self.store.end(self.owner, keep=keep)


_current: ContextVar[Transaction | None] = ContextVar("outfitter_transaction", default=None)


class Store:
    """The values of one session, for any thread."""

    def __init__(self, log_limit: int) -> None:
        """Begin empty; each log keeps its newest ``log_limit`` values."""
        self.lock = threading.RLock()
        self._journal = Journal()
        self._logs: dict[type, deque[Any]] = {}
        self._log_limit = log_limit

    # ── how slices are kept ──

    def is_log(self, kind: type) -> bool:
        """Whether the slice is a log."""
        return kind in self._logs

    def keep(self, kind: type, policy: SlicePolicy) -> None:
        """Keep the slice as state or as a log."""
        with self.lock:
            if (kind in self._logs) == (policy is SlicePolicy.LOG):
                return
            if self.values(kind):
                raise Conflict(f"the slice of {kind.__name__} holds values already; say first how it is kept")
            if policy is SlicePolicy.LOG:
                self._logs[kind] = deque[Any](maxlen=self._log_limit)
            else:
                del self._logs[kind]

    # ── values ──

    def values(self, kind: type) -> Values:
        """The values of one slice."""
        with self.lock:
            log = self._logs.get(kind)
            return self._journal.state.get(kind, ()) if log is None else tuple(log)

    def latest(self, kind: type) -> Any:  # noqa: ANN401 - a value of the kind, or None
        """The newest value of one slice; None when it is empty."""
        with self.lock:
            kept = self._logs.get(kind)
            values = self._journal.state.get(kind) if kept is None else kept
            return values[-1] if values else None

    def append(self, kind: type, value: object) -> None:
        """Add a value; to a log in the same short time however long it is."""
        with self.lock:
            log = self._logs.get(kind)
            if log is None:
                self.change(kind, lambda values: (*values, value))
            else:
                log.append(value)

    def change(self, kind: type, change: Change) -> None:
        """Replace the values of one slice, as part of the transaction around it."""
        with self.lock:
            log = self._logs.get(kind)
            if log is None:
                self._journal.apply(kind, change, self._owner())
            else:
                changed = change(tuple(log))
                log.clear()
                log.extend(changed)

    def snapshot(self, session_id: str) -> Snapshot:
        """The state as it is now, without the logs."""
        with self.lock:
            return Snapshot(session_id, MappingProxyType(dict(self._journal.state)))

    def restore(self, snapshot: Snapshot) -> None:
        """Make the state what it was; the logs stay."""
        with self.lock:
            for kind in {*self._journal.state, *snapshot.slices} - self._logs.keys():
                self.change(kind, _constant(snapshot.slices.get(kind, ())))

    # ── transactions ──

    def begin(self) -> Owner:
        """A new transaction, inside the one around it."""
        with self.lock:
            return Owner(self._owner())

    def end(self, owner: Owner, *, keep: bool) -> None:
        """Keep or undo a transaction; ended once, it stays as it is."""
        with self.lock:
            if owner.is_open:
                (self._journal.commit if keep else self._journal.undo)(owner)

    def _owner(self) -> Owner | None:
        """Whose a change is that is made here and now; Conflict when it was undone."""
        transaction = _current.get()
        while transaction is not None and transaction.store is not self:
            transaction = transaction.around
        owner = heir_of(None if transaction is None else transaction.owner)
        if owner is not None and owner.is_undone:
            raise Conflict("the call this change belongs to was undone", hint="nothing is changed")
        return owner


def _constant(values: Values) -> Change:
    return lambda _: values
