"""Counting against budgets: before a call one look and one addition for each, after it what it has used.

A ledger is a table of numbers, a few words for each key; where it lives is its own affair (``storage`` has a file that
many processes share). A meter knows the places of its counters in it, and looks them up again when a window ends: so a
call costs a comparison for each budget and nothing else. Equal calls are told by a checksum: a chance in four billion
that the breaker of loops takes two calls for one does nobody harm. Time is given; keys and words are ``budgets``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from zlib import crc32

from outfitter.catalog import Budget, Budgets, Measure, Period
from outfitter.policy.budgets import (
    REPEATS,
    ROW_SECONDS,
    BudgetState,
    Counter,
    Payer,
    Refusal,
    ends_at,
    key_of,
    window_of,
)

WINDOW, COUNT, TOUCHED = 2, 3, 4
"""Where the words of a slot stand, counted from its place: of which window it is, how much, and since when."""
SLOT_WORDS = 8
_LONGEST_TURN = 3600
"""A meter looks its places up again so often."""
_RUN_SECONDS = 30 * 86400
"""What a run has used is kept so long after its last call."""
_MARK_BYTES = 7
_BYTES_OF_TWO_TOKENS = 7


class Ledger(Protocol):
    """A table of numbers. Between ``take`` and ``give`` nobody else changes it."""

    @property
    def is_held(self) -> bool:
        """Whether it is this process's already, and stays so: then nobody takes or gives it."""
        ...

    @property
    def words(self) -> Any:  # noqa: ANN401 - a list or a view of memory: whole numbers by index
        """All of it."""
        ...

    def take(self) -> None:
        """Have it alone; StorageUnavailable when that is not to be had."""
        ...

    def give(self) -> None:
        """Let others have it."""
        ...

    def find(self, key: bytes) -> int | None:
        """The place of a key; None when it has none."""
        ...

    def place(self, key: bytes, now: float, until: float) -> int:
        """The place of a key, made when it has none, and kept until then; StorageUnavailable when there is no room."""
        ...


@dataclass(slots=True)
class MemoryLedger:
    """A ledger of this process, which forgets when it ends."""

    words: list[int] = field(default_factory=list[int])
    is_held: bool = False
    _places: dict[bytes, int] = field(default_factory=dict[bytes, int])
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def take(self) -> None:
        """Have it alone among the threads."""
        self._lock.acquire()

    def give(self) -> None:
        """Let others have it."""
        self._lock.release()

    def find(self, key: bytes) -> int | None:
        """The place of a key."""
        return self._places.get(key)

    def place(self, key: bytes, now: float, until: float) -> int:  # noqa: ARG002 - it keeps everything
        """The place of a key, made when it has none."""
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = len(self.words)
            self.words.extend((0,) * SLOT_WORDS)
        return found


class Meter:
    """Counts the calls of one tool by one payer."""

    __slots__ = (
        "_bytes", "_calls", "_checks", "_clock", "_counters", "_mark", "_repeats", "_row", "_row_key",
        "_since", "_tokens", "_until", "_words", "is_charged", "ledger", "reads",
    )  # fmt: skip

    def __init__(
        self,
        ledger: Ledger,
        counters: Sequence[Counter],
        row: tuple[bytes, str, int] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Count in a ledger. The row is its key, what is called, and how often in a row that may be."""
        self.ledger, self._counters, self._clock = ledger, tuple(counters), clock
        self._row_key, what, self._repeats = row or (b"", "", 0)
        self._mark = int.from_bytes(key_of(what)[:_MARK_BYTES])
        self.reads = row is not None
        """Whether it makes a difference which arguments a call has."""
        self.is_charged = any(counter.budget.measure is not Measure.CALLS for counter in counters)
        """Whether it makes a difference how much a call uses."""
        self._words: Any = ledger.words
        self._checks: tuple[tuple[int, int, Counter], ...] = ()
        self._calls: tuple[int, ...] = ()
        self._bytes: tuple[int, ...] = ()
        self._tokens: tuple[int, ...] = ()
        self._row = (0, 0, 0)
        self._since = self._until = 0.0

    def spend(self, arguments: bytes = b"") -> Refusal | None:
        """Count one call; when a budget does not allow it, count nothing and say which.

        The arguments are JSON with sorted keys. StorageUnavailable when it cannot be counted.
        """
        with having(self.ledger):
            now = self._at()
            return None if self._count([arguments], now) else self._refusal(now)

    def spend_some(self, calls: Sequence[bytes]) -> int:
        """Count calls until one is not allowed, given the arguments of each; how many those are."""
        with having(self.ledger):
            return self._count(calls, self._at())

    def _count(self, calls: Sequence[bytes], now: float) -> int:
        allowed, words = len(calls), self._words
        for place, amount, counter in self._checks:
            left = max(0, amount - words[place])
            if not left or counter.budget.measure is Measure.CALLS:
                allowed = min(allowed, left)
        if self.reads and allowed:
            allowed = self._walk(calls[:allowed], now)
        if allowed:
            for place in self._calls:
                words[place] += allowed
        return allowed

    def _refusal(self, now: float) -> Refusal:
        """Why the next call is not allowed."""
        for place, amount, counter in self._checks:
            if self._words[place] >= amount:
                return counter.refusal(self._words[place], now)
        _, count, touched = (self._words[place] for place in self._row)
        ends = float(touched + ROW_SECONDS)
        return Refusal(REPEATS, count, self._repeats, resets_at=ends, seconds=max(1, round(ends - now)))

    def _at(self) -> float:
        """The time; the places are those of its windows."""
        now = self._clock()
        if not self._since <= now < self._until:
            self._turn(now)
        return now

    def _walk(self, calls: Sequence[bytes], now: float) -> int:
        """How many calls go on in the row of equal calls or begin another, until one is one too many."""
        places, words, moment = self._row, self._words, int(now)
        said, count, since = (words[place] for place in places)
        mark, repeats, allowed = self._mark, self._repeats, 0
        for arguments in calls:
            this = mark ^ crc32(arguments)
            if this != said:
                said, count, since = this, 1, moment
            elif count < repeats:
                count += 1
            elif count and now < since + ROW_SECONDS <= now + ROW_SECONDS + 1:
                break
            else:
                count, since = 1, moment
            allowed += 1
        for place, value in zip(places, (said, count, since), strict=True):
            words[place] = value
        return allowed

    def charge(self, size: int) -> None:
        """Count what a call has used: so many bytes of arguments and result."""
        pay({self: size})

    def add(self, size: int) -> None:
        """The same, by whoever has the ledger."""
        if self.is_charged:
            self._at()
            for place in self._bytes:
                self._words[place] += size
            for place in self._tokens:
                self._words[place] += tokens_in(size)

    def take_back(self) -> None:
        """One call that was counted has not been made."""
        with having(self.ledger):
            self._at()
            for place in (*self._calls, self._row[1]) if self.reads else self._calls:
                self._words[place] = max(0, self._words[place] - 1)

    def _turn(self, now: float) -> None:
        """Find every place, and begin the windows that have come."""
        ends = [now + _LONGEST_TURN]
        by_measure = {measure: list[int]() for measure in Measure}
        checks: list[tuple[int, int, Counter]] = []
        for counter in self._counters:
            budget = counter.budget
            end = ends_at(budget.period, now)
            until = now + _RUN_SECONDS if end is None else end + 2 * _LONGEST_TURN
            place = self.ledger.place(counter.key, now, until)
            _begin(self._words, place, window_of(budget.period, now))
            ends.append(end or ends[0])
            checks.append((place + COUNT, budget.amount, counter))
            by_measure[budget.measure].append(place + COUNT)
        if self._row_key:
            place = self.ledger.place(self._row_key, now, now + 2 * _LONGEST_TURN)
            self._row = (place + WINDOW, place + COUNT, place + TOUCHED)
        self._checks = tuple(checks)
        self._calls, self._bytes, self._tokens = (tuple(by_measure[measure]) for measure in Measure)
        self._since, self._until = now, min(ends)


def _begin(words: Any, place: int, window: int) -> None:  # noqa: ANN401 - see Ledger.words
    """Begin a window, unless it goes on; a clock that was set back a little does not begin the last one again."""
    if words[place + WINDOW] not in {window, window + 1}:
        words[place + COUNT] = 0
        words[place + WINDOW] = window


def pay(owed: dict[Meter, int]) -> None:
    """Count the bytes that are owed; all meters count in one ledger, which is taken once.

    What was counted is taken out: StorageUnavailable leaves the rest.
    """
    with having(next(iter(owed)).ledger):
        for meter in tuple(owed):
            meter.add(owed[meter])
            del owed[meter]


def tokens_in(size: int) -> int:
    """About how many tokens a model reads in so many bytes of JSON: two in seven bytes."""
    return -(-2 * size // _BYTES_OF_TWO_TOKENS)


def states_of(ledger: Ledger, payer: Payer, budgets: Budgets, now: float) -> tuple[BudgetState, ...]:
    """How far each budget is used; they are looked at and not changed. Nobody knows it of a run that is not named."""
    counted = {counter.budget: counter for counter in payer.counters(budgets.limits)}
    states = [
        _state(ledger, counted[budget], payer.run, now) if budget in counted else _unnamed(budget)
        for budget in budgets.limits
    ]
    if budgets.repeats is not None:
        states.append(_row_state(ledger, payer, budgets.repeats, now))
    return tuple(states)


def _state(ledger: Ledger, counter: Counter, run: str, now: float) -> BudgetState:
    place, budget = ledger.find(counter.key), counter.budget
    window, used = window_of(budget.period, now), 0
    if place is not None and ledger.words[place + WINDOW] in {window, window + 1}:
        used = ledger.words[place + COUNT]
    own = run if budget.period is Period.RUN else ""
    ends = ends_at(budget.period, now)
    return BudgetState(budget.name, used, budget.amount, budget.scope, own, ends, counter.key)


def _unnamed(budget: Budget) -> BudgetState:
    return BudgetState(budget.name, None, budget.amount, budget.scope)


def _row_state(ledger: Ledger, payer: Payer, repeats: int, now: float) -> BudgetState:
    place, used, ends = ledger.find(payer.row_key), 0, None
    if place is not None and ledger.words[place + TOUCHED] + ROW_SECONDS > now:
        used, ends = ledger.words[place + COUNT], float(ledger.words[place + TOUCHED] + ROW_SECONDS)
    return BudgetState(REPEATS, used, repeats, "", payer.run, ends, payer.row_key)


def reset_counts(ledger: Ledger, keys: Sequence[bytes]) -> None:
    """Begin these counts anew."""
    with having(ledger):
        for key in keys:
            place = ledger.find(key)
            if place is not None:
                ledger.words[place + COUNT] = 0


@contextmanager
def having(ledger: Ledger) -> Generator[None]:
    """Have a ledger alone as long as the block lasts."""
    if ledger.is_held:
        yield
        return
    ledger.take()
    try:
        yield
    finally:
        ledger.give()
