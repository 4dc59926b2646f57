"""What an agent remembers: slices of values by their type, changed by events, undone when a call fails.

STATE slices belong to the current truth and are rolled back; LOG slices say what happened and stay. A session may be
used from any thread; a change inside ``transaction()`` belongs to it, also from threads that the block starts with its
context.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from outfitter.calls import ToolInvoked
from outfitter.errors import Conflict
from outfitter.session.dispatcher import Dispatcher, DispatchResult, InProcessDispatcher
from outfitter.session.journal import Change, Journal, Owner, Values

T = TypeVar("T")
E = TypeVar("E")
_LONGEST_LOG = 10_000


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
    """Changes that are kept or undone together; undone when its block raises, or when it is told to."""

    session: Session = field(repr=False)
    owner: Owner
    parent: Transaction | None = field(default=None, repr=False)

    def rollback(self) -> None:
        """Take back what was changed in it; later changes in it are refused."""
        self.session.end(self, keep=False)


_current: ContextVar[Transaction | None] = ContextVar("outfitter_transaction", default=None)


@dataclass(frozen=True, slots=True)
class Slice(Generic[T]):
    """The values of one type in a session."""

    _session: Session = field(repr=False)
    kind: type[T]

    def all(self) -> tuple[T, ...]:
        """Every value, oldest first."""
        return cast("tuple[T, ...]", self._session.values(self.kind))

    def latest(self) -> T | None:
        """The newest value."""
        values = self.all()
        return values[-1] if values else None

    def where(self, predicate: Callable[[T], bool]) -> tuple[T, ...]:
        """The values for which the predicate holds."""
        return tuple(value for value in self.all() if predicate(value))

    def seed(self, values: T | Iterable[T]) -> None:
        """Begin with these values, or this one; what was there goes."""
        given = tuple(cast("Iterable[T]", values)) if _is_several(values, self.kind) else (values,)
        self.update(lambda _: given)

    def append(self, value: T) -> None:
        """Add a value."""
        self.update(lambda values: (*values, value))

    def clear(self) -> None:
        """Forget every value."""
        self.update(lambda _: ())

    def update(self, change: Callable[[tuple[T, ...]], Iterable[Any]]) -> None:
        """Replace the values by what a pure function makes of them."""
        self._session.change(self.kind, lambda values: tuple(change(values)))

    def register(
        self,
        event_type: type[E],
        reducer: Callable[[tuple[T, ...], E], Iterable[T]],
        *,
        policy: SlicePolicy | None = None,
    ) -> None:
        """Have a pure reducer make the new values of every event of the type."""
        if policy is not None:
            self.keep_as(policy)
        self._session.add_reducer(self.kind, event_type, reducer)

    def keep_as(self, policy: SlicePolicy) -> None:
        """Say whether the slice is state or a log, before anything is in it."""
        self._session.set_policy(self.kind, policy)


def _is_several(values: object, kind: type) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, kind)


class Session:
    """The state of one conversation: ``session[T]`` is the slice of type T, ``dispatch`` tells it what happened."""

    def __init__(
        self, dispatcher: Dispatcher | None = None, *, bus: Dispatcher | None = None, session_id: str | None = None,
        log_limit: int = _LONGEST_LOG,
    ) -> None:  # fmt: skip
        """Listen to the dispatcher (``bus`` is another name for it), or to one of its own."""
        if dispatcher is not None and bus is not None:
            raise TypeError("give 'dispatcher' or 'bus', not both")
        self.session_id = session_id or uuid.uuid4().hex
        self.dispatcher: Dispatcher = dispatcher or bus or InProcessDispatcher()
        self._lock = threading.RLock()
        self._journal = Journal()
        self._logs: dict[type, list[Any]] = {ToolInvoked: []}
        self._log_limit = log_limit
        self._reducers: dict[type, list[tuple[type, Callable[[Values, Any], Iterable[Any]]]]] = {}
        self.dispatcher.subscribe(object, _weak_listener(self))

    def __getitem__(self, kind: type[T]) -> Slice[T]:
        """The slice of this type."""
        return Slice(self, kind)

    # ── events ──

    def dispatch(self, event: object) -> DispatchResult:
        """Tell everyone who listens, this session's own reducers among them."""
        return self.dispatcher.dispatch(event)

    def take(self, event: object) -> None:
        """Let the reducers of the event change their slices; an event of another session is not ours."""
        if getattr(event, "session_id", None) not in {None, self.session_id}:
            return
        with self._lock:
            kind = type(event)
            if kind in self._logs and not any(target is kind for target, _ in self._reducers.get(kind, ())):
                self.change(kind, lambda values: (*values, event))
            for base in kind.__mro__:
                for target, reducer in tuple(self._reducers.get(base, ())):
                    self.change(target, _applied(reducer, event))

    def add_reducer(self, kind: type, event_type: type, reducer: Callable[[Any, Any], Iterable[Any]]) -> None:
        """Have the reducer change the slice on every event of the type."""
        with self._lock:
            self._reducers.setdefault(event_type, []).append((kind, reducer))

    def set_policy(self, kind: type, policy: SlicePolicy) -> None:
        """Keep the slice as state or as a log."""
        with self._lock:
            if (kind in self._logs) == (policy is SlicePolicy.LOG):
                return
            if self.values(kind):
                raise Conflict(f"the slice of {kind.__name__} holds values already; say first how it is kept")
            if policy is SlicePolicy.LOG:
                self._logs[kind] = []
            else:
                del self._logs[kind]

    # ── values ──

    def values(self, kind: type) -> Values:
        """The values of one slice."""
        with self._lock:
            log = self._logs.get(kind)
            return tuple(log) if log is not None else self._journal.state.get(kind, ())

    def change(self, kind: type, change: Change) -> None:
        """Replace the values of one slice, as part of the transaction around it."""
        with self._lock:
            log = self._logs.get(kind)
            if log is not None:
                log[:] = change(tuple(log))[-self._log_limit :]
                return
            transaction = self._enclosing()
            if transaction is not None and not transaction.owner.is_open:
                raise Conflict("the call this change belongs to is over; nothing is changed")
            self._journal.apply(kind, change, None if transaction is None else transaction.owner)

    def snapshot(self) -> Snapshot:
        """The state as it is now, without the logs."""
        with self._lock:
            return Snapshot(self.session_id, MappingProxyType(dict(self._journal.state)))

    def restore(self, snapshot: Snapshot) -> None:
        """Make the state what it was; the logs stay."""
        with self._lock:
            for kind in {*self._journal.state, *snapshot.slices}:
                if kind not in self._logs:
                    self.change(kind, _constant(snapshot.slices.get(kind, ())))

    # ── transactions ──

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """A block whose changes of state are undone when it raises or is rolled back."""
        parent = self._enclosing()
        with self._lock:
            transaction = Transaction(
                self, self._journal.begin(None if parent is None else parent.owner), _current.get()
            )
        token = _current.set(transaction)
        try:
            yield transaction
        except BaseException:
            self.end(transaction, keep=False)
            raise
        else:
            self.end(transaction, keep=True)
        finally:
            _current.reset(token)

    def end(self, transaction: Transaction, *, keep: bool) -> None:
        """Keep or undo a transaction; ended once, it stays as it is."""
        with self._lock:
            if transaction.owner.is_open:
                (self._journal.commit if keep else self._journal.undo)(transaction.owner)

    def _enclosing(self) -> Transaction | None:
        transaction = _current.get()
        while transaction is not None and transaction.session is not self:
            transaction = transaction.parent
        return transaction


def _applied(reducer: Callable[[Values, Any], Iterable[Any]], event: object) -> Change:
    return lambda values: tuple(reducer(values, event))


def _constant(values: Values) -> Change:
    return lambda _: values


def _weak_listener(session: Session) -> Callable[[object], None]:
    """A handler that does not keep the session alive on a dispatcher that outlives it."""
    reference = weakref.ref(session)

    def listen(event: object) -> None:
        target = reference()
        if target is not None:
            target.take(event)

    return listen
