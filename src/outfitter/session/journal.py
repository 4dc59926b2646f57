"""Which change belongs to which transaction, so that one can be undone while others go on.

A slice that an open transaction has changed keeps its history: the values from before, and every change since with its
owner. Undoing a transaction replays the others' changes on the values from before; what nobody can undo any more is
folded into them. Pure bookkeeping: the lock is the store's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

Values = tuple[Any, ...]
Change = Callable[[Values], Values]
_log = logging.getLogger(__name__)


class _Standing(Enum):
    OPEN = auto()
    KEPT = auto()
    UNDONE = auto()


@dataclass(slots=True, eq=False)
class Owner:
    """One transaction, as the journal knows it."""

    parent: Owner | None = None
    standing: _Standing = _Standing.OPEN
    kinds: set[type] = field(default_factory=set[type])
    """The slices it has changed."""

    @property
    def is_open(self) -> bool:
        """Whether it can still be kept or undone."""
        return self.standing is _Standing.OPEN

    @property
    def is_undone(self) -> bool:
        """Whether it was taken back, or the one around it was."""
        return self.standing is _Standing.UNDONE or (self.parent is not None and self.parent.is_undone)


def heir_of(owner: Owner | None) -> Owner | None:
    """Whose a change is now: what was kept belongs to the transaction around it, or to nobody any more."""
    while owner is not None and owner.standing is _Standing.KEPT:
        owner = owner.parent
    return owner


@dataclass(slots=True)
class _Entry:
    owner: Owner | None
    change: Change


@dataclass(slots=True)
class _History:
    base: Values
    entries: list[_Entry] = field(default_factory=list[_Entry])

    def fold(self) -> None:
        """Settle the oldest changes, as far as nobody can undo them any more."""
        settled = next((place for place, entry in enumerate(self.entries) if entry.owner is not None), None)
        if settled is None:
            self.entries.clear()
            return
        for entry in self.entries[:settled]:
            self.base = _replayed(entry.change, self.base)
        del self.entries[:settled]

    def replay(self) -> Values:
        """The values that these changes make of those from before."""
        values = self.base
        for entry in self.entries:
            values = _replayed(entry.change, values)
        return values


def _replayed(change: Change, values: Values) -> Values:
    try:
        return change(values)
    except Exception:  # noqa: BLE001 - foreign code, which may need what was just undone; the undoing must go on
        _log.exception("a change could not be repeated after another was undone; it is dropped")
        return values


@dataclass(slots=True)
class Journal:
    """The state, and what may still be taken back of it."""

    state: dict[type, Values] = field(default_factory=dict[type, Values])
    _histories: dict[type, _History] = field(default_factory=dict[type, _History])

    def apply(self, kind: type, change: Change, owner: Owner | None) -> None:
        """Change one slice, for a transaction or for nobody; a change that raises changes nothing."""
        before = self.state.get(kind, ())
        self.state[kind] = change(before)
        history = self._histories.get(kind)
        if history is None and owner is None:
            return
        if history is None:
            history = self._histories[kind] = _History(before)
        history.entries.append(_Entry(owner, change))
        if owner is not None:
            owner.kinds.add(kind)

    def commit(self, owner: Owner) -> None:
        """Keep what the transaction changed; inside another one it becomes that one's."""
        owner.standing = _Standing.KEPT
        heir = heir_of(owner)
        for kind in owner.kinds & self._histories.keys():
            for entry in self._histories[kind].entries:
                if entry.owner is owner:
                    entry.owner = heir
            if heir is not None:
                heir.kinds.add(kind)
            self._settle(kind)

    def undo(self, owner: Owner) -> None:
        """Take back what the transaction, and any inside it, changed and nothing else."""
        owner.standing = _Standing.UNDONE
        for kind, history in tuple(self._histories.items()):
            rest = [entry for entry in history.entries if entry.owner is None or not entry.owner.is_undone]
            if len(rest) < len(history.entries):
                history.entries = rest
                self.state[kind] = history.replay()
                self._settle(kind)

    def _settle(self, kind: type) -> None:
        history = self._histories[kind]
        history.fold()
        if not history.entries:
            del self._histories[kind]
