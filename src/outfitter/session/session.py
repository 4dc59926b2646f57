"""What an agent remembers: slices of values by their type, changed by events, undone when a call fails.

STATE slices belong to the current truth and are rolled back; LOG slices say what happened and stay. A session may be
used from any thread. Where the values are, and how a transaction undoes its own, is ``store``.
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from outfitter.calls import ToolInvoked
from outfitter.errors import Conflict
from outfitter.policy import Approve
from outfitter.session.dispatcher import Dispatcher, DispatchResult, InProcessDispatcher
from outfitter.session.reducers import append_all
from outfitter.session.store import SlicePolicy, Snapshot, Store, Transaction

T = TypeVar("T")
E = TypeVar("E")
_LONGEST_LOG = 10_000
_Reducer = Callable[[Any, Any], Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Slice(Generic[T]):
    """The values of one type in a session."""

    _session: Session = field(repr=False)
    kind: type[T]

    def all(self) -> tuple[T, ...]:
        """Every value, oldest first."""
        return cast("tuple[T, ...]", self._session.store.values(self.kind))

    def latest(self) -> T | None:
        """The newest value."""
        return cast("T | None", self._session.store.latest(self.kind))

    def where(self, predicate: Callable[[T], bool]) -> tuple[T, ...]:
        """The values for which the predicate holds."""
        return tuple(value for value in self.all() if predicate(value))

    def seed(self, values: T | Iterable[T]) -> None:
        """Begin with these values, or this one; what was there goes."""
        given = tuple(cast("Iterable[T]", values)) if _is_several(values, self.kind) else (values,)
        self.update(lambda _: given)

    def append(self, value: T) -> None:
        """Add a value."""
        self._session.store.append(self.kind, value)

    def clear(self) -> None:
        """Forget every value."""
        self.update(lambda _: ())

    def update(self, change: Callable[[tuple[T, ...]], Iterable[Any]]) -> None:
        """Replace the values by what a pure function makes of them; it may be called again when another is undone."""
        self._session.store.change(self.kind, lambda values: tuple(change(values)))

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
        """Say whether the slice is state or a log, before anything is in it; a log takes events of its type itself."""
        self._session.store.keep(self.kind, policy)


def _is_several(values: object, kind: type) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, kind)


class Session:
    """The state of one conversation: ``session[T]`` is the slice of type T, ``dispatch`` tells it what happened."""

    def __init__(
        self, dispatcher: Dispatcher | None = None, *, bus: Dispatcher | None = None, session_id: str | None = None,
        log_limit: int = _LONGEST_LOG, approver: Approve | None = None,
    ) -> None:  # fmt: skip
        """Listen to the dispatcher (``bus`` is another name for it), or to one of its own.

        ``approver`` is asked about calls of this session that a policy asks about.
        """
        if dispatcher is not None and bus is not None:
            raise Conflict("'dispatcher' and 'bus' are two names of one thing", hint="give one of them")
        given = dispatcher if dispatcher is not None else bus
        self.approver = approver
        self.session_id = session_id or uuid.uuid4().hex
        self.dispatcher: Dispatcher = InProcessDispatcher() if given is None else given
        self.store = Store(log_limit)
        self.store.keep(ToolInvoked, SlicePolicy.LOG)
        self._reducers: dict[type, tuple[tuple[type, _Reducer], ...]] = {}
        _listen(self)

    def __getitem__(self, kind: type[T]) -> Slice[T]:
        """The slice of this type."""
        return Slice(self, kind)

    # ── events ──

    def dispatch(self, event: object) -> DispatchResult:
        """Tell everyone who listens, this session's own reducers among them."""
        return self.dispatcher.dispatch(event)

    def take(self, event: object) -> None:
        """Let the reducers of the event change their slices; an event of another session is not ours.

        A reducer that raises changes nothing and keeps no other one from its slice.
        """
        if getattr(event, "session_id", None) not in (None, self.session_id):
            return
        errors: list[Exception] = []
        with self.store.lock:
            for target, reducer in self._reducers_of(event):
                try:
                    self._reduce(target, reducer, event)
                except Exception as error:  # noqa: BLE001 - a reducer is foreign code; the others must be heard too
                    errors.append(error)
        if errors:
            raise errors[0] if len(errors) == 1 else ExceptionGroup("several reducers failed", errors)

    def _reducers_of(self, event: object) -> list[tuple[type, _Reducer]]:
        kind = type(event)
        found = [each for base in kind.__mro__ for each in self._reducers.get(base, ())]
        by_itself = self.store.is_log(kind) and not any(target is kind for target, _ in found)
        return [(kind, append_all), *found] if by_itself else found

    def _reduce(self, target: type, reducer: _Reducer, event: object) -> None:
        if reducer is append_all:
            self.store.append(target, event)
        else:
            self.store.change(target, lambda values: tuple(reducer(values, event)))

    def add_reducer(self, kind: type, event_type: type, reducer: _Reducer) -> None:
        """Have the reducer change the slice on every event of the type."""
        with self.store.lock:
            self._reducers[event_type] = (*self._reducers.get(event_type, ()), (kind, reducer))

    # ── state ──

    def snapshot(self) -> Snapshot:
        """The state as it is now, without the logs."""
        return self.store.snapshot(self.session_id)

    def restore(self, snapshot: Snapshot) -> None:
        """Make the state what it was; the logs stay."""
        self.store.restore(snapshot)

    def transaction(self) -> Transaction:
        """A block whose changes of state are undone when it raises or is rolled back."""
        return Transaction(self.store)


def _listen(session: Session) -> None:
    """Hear the dispatcher without being kept alive by it: one that outlives the session drops it at the next event."""
    dispatcher, reference = session.dispatcher, weakref.ref(session)

    def hear(event: object) -> None:
        target = reference()
        if target is None:
            dispatcher.unsubscribe(object, hear)
        else:
            target.take(event)

    dispatcher.subscribe(object, hear)
