"""Which definitions of tools were approved on this machine, which wait, and who decided.

What is to be written is decided by ``policy.review`` inside the transaction that writes it: of several workers that see
a server for the first time, the first pins it. Reading is from memory until another process has written. Who asks is
``gateway.pins``; tools that wait for single agents are ``late_tools``; the file is ``pin_base``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from outfitter.basics import quote, suggest
from outfitter.catalog import PinMode
from outfitter.errors import NotFound, StorageUnavailable
from outfitter.policy import Definition, Held, News, Pin, PinState, Review, Why, review
from outfitter.storage.late_tools import LateTools
from outfitter.storage.pin_base import PinBase, moment

_log = logging.getLogger(__name__)
_MOST_NAMED = 20
_COLUMNS = "server, kind, name, digest, bare, text, state, why, was, since, decided, by"
_SELECT = f"SELECT {_COLUMNS} FROM pins WHERE server = ? ORDER BY rowid"  # noqa: S608 - names of ours
_INSERT = f"INSERT OR IGNORE INTO pins ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - names of ours
_DECIDE = (
    "UPDATE pins SET state = ?, why = ?, decided = ?, by = ? WHERE server = ? AND kind = ? AND name = ? AND digest = ?"
)
_PRUNE = """DELETE FROM pins WHERE server = ? AND kind = ? AND name = ? AND state = 'pending' AND rowid NOT IN (
    SELECT rowid FROM pins WHERE server = ? AND kind = ? AND name = ? AND state = 'pending' ORDER BY rowid DESC LIMIT 4
)"""
"""Of a tool that changes at every look the newest are kept."""


@dataclass(slots=True)
class PinBook:
    """The pins in one file. May be used from several threads."""

    base: PinBase
    late: LateTools = field(init=False)
    _pins: dict[str, tuple[Pin, ...]] = field(default_factory=dict[str, "tuple[Pin, ...]"], repr=False)
    """What was last read, by server, as long as nobody has written."""
    _unwritten: dict[str, tuple[Pin, ...]] = field(default_factory=dict[str, "tuple[Pin, ...]"], repr=False)
    """What could not be written: it is remembered until this process ends."""
    _told: set[str] = field(default_factory=set[str], repr=False)

    @classmethod
    def at(cls, path: Path) -> PinBook:
        """The pins of this file, which need not exist."""
        return cls(PinBase(path))

    def __post_init__(self) -> None:
        """What was read is read again when somebody has written."""
        self.late = LateTools(self.base)
        self.base.on_change.append(self._pins.clear)

    # ── for the gateway ──

    def look(self, server: str, mode: PinMode, listed: Sequence[Definition]) -> Mapping[str, Held]:
        """The definitions of a server that are held back, by name; new ones are written down.

        Where nothing can be read, all are: nobody can say what was approved.
        """
        if mode is PinMode.OFF or not listed:
            return {}
        with self.base.lock:
            try:
                found = review(listed, self._of(server), mode)
                return (self._write_down(server, mode, listed) if found.news else found).held
            except StorageUnavailable as error:
                if server not in self._told:
                    self._told.add(server)
                    _log.warning("the tools of server '%s' are hidden: %s", server, error)
                return {one.name: Held(one.name, Why.UNKNOWN) for one in listed}

    def sift(self, server: str, agent: str, listed: Collection[str], let_in: Collection[str]) -> Collection[str]:
        """Those of the tools that are let in which appeared later and wait for this agent."""
        return self.late.sift(server, agent, listed, let_in)

    def pin_of(self, server: str, tool: str) -> str:
        """The digest of the approved definition of a tool, the one approved last; empty when there is none."""
        with self.base.lock:
            pins = [pin for pin in self._of(server) if (pin.kind, pin.name) == ("tool", tool)]
        pinned = [pin for pin in pins if pin.state is PinState.PINNED]
        return max(pinned, key=lambda pin: pin.decided).digest if pinned else ""

    def changed(self) -> tuple[str, ...]:
        """The servers about which another process has decided something since this was last asked."""
        return self.base.changed()

    def _write_down(self, server: str, mode: PinMode, listed: Sequence[Definition]) -> Review:
        now = moment()
        try:
            with self.base.writing(server) as base:
                found = review(listed, (*self._read(server), *self._unwritten.get(server, ())), mode)
                for one in found.news:
                    base.execute(_INSERT, _row(one.pin(server, now)))
                    if one.state is PinState.PENDING:
                        base.execute(_PRUNE, (server, one.definition.kind, one.definition.name) * 2)
        except StorageUnavailable as error:
            found = review(listed, self._of(server), mode)
            kept = self._unwritten.get(server, ())
            self._unwritten[server] = (*kept, *(one.pin(server, now) for one in found.news))
            _log.warning("what server '%s' shows is remembered until this process ends only: %s", server, error)
        _warn(server, found.news)
        return found

    # ── for people ──

    def pins(self, server: str | None = None) -> tuple[Pin, ...]:
        """Everything that is kept of one server, or of all, by server and name; the newest of a name last."""
        with self.base.lock:
            rows = self.base.query("SELECT DISTINCT server FROM pins") if server is None else [(server,)]
            found = [pin for row in rows for pin in self._of(row[0])]
        return tuple(sorted(found, key=lambda pin: (pin.server, pin.kind, pin.name, pin.since)))

    def approve(self, server: str, names: Iterable[str] = (), *, digest: str = "", by: str = "") -> tuple[Pin, ...]:
        """Approve what waits, all of it or under these names; what was approved. NotFound where nothing waits.

        The instructions of a server have an empty name. With a ``digest``, or its beginning, nothing else is approved:
        a definition that changed after somebody looked at it waits on.
        """
        chosen = self._choose(server, tuple(names), digest, PinState.PENDING, PinState.REJECTED)
        self._decide(chosen, PinState.PINNED, by)
        return chosen

    def reject(self, server: str, names: Iterable[str] = (), *, digest: str = "", by: str = "") -> tuple[Pin, ...]:
        """Reject what waits; a tool that is named and does not wait is not approved any more."""
        chosen = self._choose(server, tuple(names), digest, PinState.PENDING, PinState.PINNED)
        self._decide(chosen, PinState.REJECTED, by)
        return chosen

    def _choose(self, server: str, names: tuple[str, ...], digest: str, *states: PinState) -> tuple[Pin, ...]:
        """The definitions that are meant: those in the first of the states, in another only where they are named."""
        pins = [pin for pin in self.pins(server) if pin.digest.startswith(digest)]
        waiting = [pin for pin in pins if pin.state is states[0]]
        chosen: list[Pin] = []
        for name in names:
            found = [pin for pin in waiting if pin.name == name]
            found = found or [pin for pin in pins if pin.name == name and pin.state in states]
            if not found:
                told = f"nothing called '{name}' of server '{server}' waits" + (
                    f" with digest {digest}" if digest else ""
                )
                raise NotFound(told, hint=suggest(name, {pin.name for pin in waiting}) or "look at it again")
            chosen += found
        return tuple(chosen if names else waiting)

    def _decide(self, chosen: Collection[Pin], state: PinState, by: str) -> None:
        now = moment()
        for server in dict.fromkeys(pin.server for pin in chosen):
            with self.base.lock, self.base.writing(server, is_told=True) as base:
                for pin in chosen:
                    if pin.server == server:
                        why = Why.APPROVED if state is PinState.PINNED else pin.why
                        whose = (pin.server, pin.kind, pin.name, pin.digest)
                        base.execute(_DECIDE, (state.value, why.value, now, by, *whose))

    def _of(self, server: str) -> tuple[Pin, ...]:
        self.base.refresh(server)
        if server not in self._pins:
            self._pins[server] = self._read(server)
        return (*self._pins[server], *self._unwritten.get(server, ()))

    def _read(self, server: str) -> tuple[Pin, ...]:
        return tuple(_pin(row) for row in self.base.query(_SELECT, server))


def _row(pin: Pin) -> tuple[str, ...]:
    return (
        pin.server, pin.kind, pin.name, pin.digest, pin.bare, pin.text, pin.state.value, pin.why.value, pin.was,
        pin.since, pin.decided, pin.by,
    )  # fmt: skip


def _pin(row: tuple[str, ...]) -> Pin:
    server, kind, name, digest, bare, text, state, why, was, since, decided, by = row
    known = "tool" if kind == "tool" else "instructions"
    return Pin(server, known, name, digest, bare, text, PinState(state), Why(why), was, since, decided, by)


def _warn(server: str, news: Sequence[News]) -> None:
    late = [one for one in news if one.state is PinState.PENDING]
    if late:
        named = [
            f"{quote(one.definition.name) if one.definition.kind == 'tool' else 'its instructions'} ({one.why.value})"
            for one in late[:_MOST_NAMED]
        ]
        _log.warning("server '%s': held back until somebody approves: %s%s (outfitter pins list %s)",
                     server, ", ".join(named), ", ..." if late[_MOST_NAMED:] else "", server)  # fmt: skip
