"""Who hears of events: handlers by the type of the event, called in the order they subscribed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

E = TypeVar("E")
_log = logging.getLogger(__name__)


class Dispatcher(Protocol):
    """Takes events and lets those hear who asked for them."""

    def subscribe(self, event_type: type[E], handler: Callable[[E], object]) -> None:
        """Have the handler called with every event of the type or of a type below it."""
        ...

    def unsubscribe(self, event_type: type[E], handler: Callable[[E], object]) -> bool:
        """Stop calling the handler; whether it was called before."""
        ...

    def dispatch(self, event: object) -> DispatchResult:
        """Call every handler of the event."""
        ...


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """How many handlers heard the event, and which of them failed."""

    handled: int = 0
    errors: tuple[Exception, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no handler failed."""
        return not self.errors


@dataclass(slots=True)
class InProcessDispatcher:
    """The dispatcher of one process, for any thread. A handler that fails is logged; the others hear all the same."""

    _subscribed: tuple[tuple[type, Callable[[Any], object]], ...] = ()
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def subscribe(self, event_type: type[E], handler: Callable[[E], object]) -> None:
        """Have the handler called with every event of the type or of a type below it."""
        with self._lock:
            self._subscribed = (*self._subscribed, (event_type, handler))

    def unsubscribe(self, event_type: type[E], handler: Callable[[E], object]) -> bool:
        """Stop calling the handler; whether it was called before."""
        with self._lock:
            kept = tuple(pair for pair in self._subscribed if pair != (event_type, handler))
            found = len(kept) < len(self._subscribed)
            self._subscribed = kept
        return found

    def dispatch(self, event: object) -> DispatchResult:
        """Call every handler of the event, outside any lock."""
        handlers = [handler for kind, handler in self._subscribed if isinstance(event, kind)]
        errors: list[Exception] = []
        for handler in handlers:
            try:
                handler(event)
            except Exception as error:  # noqa: BLE001 - handlers are foreign code: one must not silence the others
                _log.exception("a handler of %s failed", type(event).__name__)
                errors.append(error)
        return DispatchResult(len(handlers), tuple(errors))


InProcessEventBus = InProcessDispatcher
