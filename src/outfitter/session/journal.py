"""Which change belongs to which transaction, so that one can be undone while others go on.

While transactions are open, changes of state are kept in order, each with its owner. Undoing a transaction replays the
others' changes on the state from before; what nobody can undo any more is folded into that state. Pure bookkeeping:
the lock is the session's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Values = tuple[Any, ...]
Change = Callable[[Values], Values]


@dataclass(slots=True, eq=False)
class Owner:
    """One transaction, as the journal knows it."""

    parent: Owner | None = None
    is_open: bool = True


@dataclass(slots=True)
class _Entry:
    owner: Owner | None
    kind: type
    change: Change


@dataclass(slots=True)
class Journal:
    """The changes since the oldest one that may still be undone."""

    state: dict[type, Values] = field(default_factory=dict[type, Values])
    _base: dict[type, Values] = field(default_factory=dict[type, Values])
    _entries: list[_Entry] = field(default_factory=list[_Entry])
    _open: int = 0

    def begin(self, parent: Owner | None) -> Owner:
        """A new transaction."""
        if not self._open:
            self._base = dict(self.state)
        self._open += 1
        return Owner(parent if parent is not None and parent.is_open else None)

    def apply(self, kind: type, change: Change, owner: Owner | None) -> None:
        """Change one slice, for a transaction or for nobody."""
        self.state[kind] = change(self.state.get(kind, ()))
        if self._open:
            self._entries.append(_Entry(owner, kind, change))

    def commit(self, owner: Owner) -> None:
        """Keep what the transaction changed; inside another one it becomes that one's."""
        for entry in self._entries:
            if entry.owner is owner:
                entry.owner = owner.parent
        self._close(owner)

    def undo(self, owner: Owner) -> None:
        """Take back what the transaction changed and nothing else."""
        touched = {entry.kind for entry in self._entries if entry.owner is owner}
        self._entries = [entry for entry in self._entries if entry.owner is not owner]
        for kind in touched:
            values = self._base.get(kind, ())
            for entry in self._entries:
                values = entry.change(values) if entry.kind is kind else values
            self.state[kind] = values
        self._close(owner)

    def _close(self, owner: Owner) -> None:
        owner.is_open = False
        self._open -= 1
        settled = 0
        for entry in self._entries:
            if entry.owner is not None:
                break
            self._base[entry.kind] = entry.change(self._base.get(entry.kind, ()))
            settled += 1
        del self._entries[:settled]
        if not self._open:
            self._base, self._entries = {}, []
