"""Calls that wait for a person, and what persons have said of them: one SQLite file of the state folder.

    waiting ──yes──▶ approved ──one call──▶ used        waiting or approved ──time──▶ expired
       └─────no────▶ denied                             waiting for a process that has died ──▶ expired

Workers, endpoints on stdio, the API and the command line share the file; every change is one transaction, so that a
yes is used once whoever comes. An answer counts for the next equal call too, while it is valid, when nobody waited any
more; what equal means is ``policy.Wish``. Arguments are kept masked. Whether a process that waits still lives is asked
of a lock that it holds.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from outfitter.errors import Conflict, StorageUnavailable
from outfitter.policy import Verdict, Wish
from outfitter.storage.approval_rows import SCHEMA, Approval, ApprovalState, count, find, get, unknown, use
from outfitter.storage.shared_file import open_shared

_LONGEST_SHOWN = 16 * 1024
_KEPT_SECONDS = 7 * 24 * 3600.0
"""How long after its end a wish can still be looked at."""
_MOST_OPEN, _MOST_KEPT = 100, 5000
"""How many wishes of one agent may be left unanswered, and how many that have ended are kept of all."""
_ENDED = {
    "used": ("has been used already", "a yes holds for one call"),
    "expired": ("has expired", "have the agent call again"),
}


@dataclass(frozen=True, slots=True)
class ApprovalTimes:
    """How long a call waits, a wish can be answered and an answer counts; how many calls of one agent may wait."""

    wait: float = 120.0
    valid: float = 900.0
    most_waiting: int = 16


@dataclass(slots=True)
class ApprovalStore:
    """The wishes of one state folder; from any thread, and from several processes at once."""

    folder: Path
    times: ApprovalTimes = field(default_factory=ApprovalTimes)
    clock: Callable[[], float] = time.time
    _base: sqlite3.Connection | None = field(default=None, repr=False)
    _reading: sqlite3.Connection | None = field(default=None, repr=False)
    """For looking only: it never waits for somebody who writes."""
    _holder: tuple[str, int] | None = None
    """The name of this process's lock, and its file."""
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def wait(self) -> float:
        """The seconds that a call waits."""
        return self.times.wait

    # ── for a call that waits ──

    def ask(self, wish: Wish, seconds: float) -> Approval | None:
        """What is known of an equal wish, or a new one that waits; None when too many of the agent's calls wait.

        A yes that nobody has used yet is used by this.
        """
        with self._changing() as base:
            now = self.clock()
            known = self._known(base, wish, now)
            if known is not None:
                return known
            most, waiting = self.times.most_waiting, "state = 'waiting' AND holder != '' AND agent = ?"
            if count(base, waiting, wish.agent) >= most:
                return None
            ident = self._unheld(base, wish) or self._add(base, wish, now)
            until = now + max(0.0, seconds)
            base.execute(
                "UPDATE approvals SET holder = ?, waits_until = ? WHERE id = ?", (self._hold(base), until, ident)
            )
            return get(base, ident)

    def look(self, ident: str) -> ApprovalState:
        """How a wish stands; cheap, and blocks nobody."""
        with self._asking() as base:
            row = base.execute("SELECT state FROM approvals WHERE id = ?", (ident,)).fetchone()
        return "expired" if row is None else row[0]

    def take(self, ident: str) -> Approval:
        """Use the yes of a wish: it is in the state ``used`` for one who asks, once."""
        with self._changing() as base:
            if get(base, ident).state == "used":
                raise Conflict(f"approval '{ident}' has been used already")
            return use(base, "id = ?", (ident,)) or get(base, ident)

    def leave(self, ident: str) -> None:
        """Nobody waits for it any more; it can be answered all the same."""
        with self._changing() as base:
            base.execute("UPDATE approvals SET holder = '', waits_until = 0 WHERE id = ?", (ident,))

    def answer(self, ident: str, verdict: Verdict) -> Approval:
        """What the person at the client said, if nobody has answered elsewhere: a yes is used at once."""
        with self._changing() as base:
            if get(base, ident).state == "waiting":
                self._decide(base, ident, verdict)
            return use(base, "id = ?", (ident,)) or get(base, ident)

    # ── for people ──

    def decide(self, ident: str, verdict: Verdict) -> Approval:
        """Say yes or no, or the other way round while it counts; NotFound, or Conflict when it is too late."""
        with self._changing() as base:
            found = get(base, ident)
            if found.state in _ENDED:
                told, hint = _ENDED[found.state]
                raise Conflict(f"approval '{ident}' {told}", hint=hint)
            self._decide(base, ident, verdict)
            return get(base, ident)

    def get(self, ident: str) -> Approval:
        """One wish; NotFound when there is none of this id."""
        if not self._exists():
            raise unknown(ident)
        with self._changing() as base:
            return get(base, ident)

    def list(self, states: Iterable[ApprovalState] = (), agent: str | None = None, limit: int = 200) -> list[Approval]:
        """Wishes in these states, or in any, the newest first."""
        if not self._exists():
            return []
        wanted = tuple(states)
        clauses = [f"state IN ({', '.join('?' * len(wanted))})"] if wanted else []
        clauses += ["agent = ?"] if agent is not None else []
        values = (*wanted, *(() if agent is None else (agent,)))
        with self._changing() as base:
            return find(base, " AND ".join(clauses) or "1", values, f"ORDER BY asked_at DESC, rowid DESC LIMIT {limit}")

    # ── inside one transaction ──

    def _known(self, base: sqlite3.Connection, wish: Wish, now: float) -> Approval | None:
        """A yes that nobody waits for, which is used now; or a no that still counts."""
        used = use(base, "binding = ? AND holder = ''", (wish.binding,))
        if used is not None:
            return used
        denied = "binding = ? AND state = 'denied' AND expires_at > ?"
        return next(iter(find(base, denied, (wish.binding, now), "LIMIT 1")), None)

    def _unheld(self, base: sqlite3.Connection, wish: Wish) -> str | None:
        """An equal wish that was left and can still be answered: it is not shown twice."""
        found = find(base, "binding = ? AND state = 'waiting' AND holder = ''", (wish.binding,), "LIMIT 1")
        return found[0].id if found else None

    def _add(self, base: sqlite3.Connection, wish: Wish, now: float) -> str:
        arguments = msgspec.json.encode(dict(wish.arguments)).decode()
        if len(arguments) > _LONGEST_SHOWN:
            arguments = msgspec.json.encode(f"(too long to be shown: {len(arguments)} characters)").decode()
        self._make_room(base, wish.agent)
        ident = secrets.token_hex(6)
        values = (
            ident, "waiting", wish.agent, wish.run, wish.server, wish.tool, wish.shown, arguments, wish.digest,
            wish.reason, wish.asked_by, now, 0.0, now + self.times.valid, 0.0, "", "", wish.binding, "",
        )  # fmt: skip
        base.execute(f"INSERT INTO approvals VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608 - marks only
        return ident

    def _make_room(self, base: sqlite3.Connection, agent: str) -> None:
        """The oldest that nobody waits for give way: whoever asks and leaves fills neither a disk nor a list."""
        left = "SELECT id FROM approvals WHERE agent = ? AND state = 'waiting' AND holder = '' ORDER BY asked_at DESC"
        expire = f"UPDATE approvals SET state = 'expired' WHERE id IN ({left} LIMIT -1 OFFSET ?)"  # noqa: S608 - ours
        base.execute(expire, (agent, _MOST_OPEN - 1))
        ended = "SELECT id FROM approvals WHERE state IN ('used', 'expired') ORDER BY asked_at DESC"
        base.execute(f"DELETE FROM approvals WHERE id IN ({ended} LIMIT -1 OFFSET ?)", (_MOST_KEPT,))  # noqa: S608 - ours

    def _decide(self, base: sqlite3.Connection, ident: str, verdict: Verdict) -> None:
        now = self.clock()
        base.execute(
            "UPDATE approvals SET state = ?, decided_at = ?, decided_by = ?, decided_where = ?, expires_at = ? "
            "WHERE id = ?",
            ("approved" if verdict.is_yes else "denied", now, verdict.by, verdict.where, now + self.times.valid, ident),
        )

    def _sweep(self, base: sqlite3.Connection) -> None:
        """What time and death have ended; a yes for a process that died counts for the next equal call."""
        now, open_ = self.clock(), "state IN ('waiting', 'approved')"
        base.execute(f"UPDATE approvals SET state = 'expired' WHERE {open_} AND expires_at <= ?", (now,))  # noqa: S608 - ours
        base.execute("DELETE FROM approvals WHERE expires_at < ?", (now - _KEPT_SECONDS,))
        held = base.execute(f"SELECT DISTINCT holder FROM approvals WHERE holder != '' AND {open_}")  # noqa: S608 - ours
        for (holder,) in held.fetchall():
            if not self._lives(holder):
                base.execute(
                    "UPDATE approvals SET holder = '', waits_until = 0, "
                    "state = CASE state WHEN 'waiting' THEN 'expired' ELSE state END WHERE holder = ?",
                    (holder,),
                )
                (self.folder / holder).unlink(missing_ok=True)

    # ── who waits ──

    def _hold(self, base: sqlite3.Connection) -> str:
        """The name of this process's lock, which ends with it. Made within a transaction: nobody looks meanwhile."""
        if self._holder is None:
            import fcntl

            del base
            name = f"waits-{secrets.token_hex(8)}"
            file = os.open(self.folder / name, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            self._holder = name, file
        return self._holder[0]

    def _lives(self, holder: str) -> bool:
        import fcntl

        try:
            file = os.open(self.folder / holder, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(file)
        return False

    # ── the file ──

    @property
    def _file(self) -> Path:
        return self.folder / "approvals.db"

    def _exists(self) -> bool:
        """Whether anything was ever asked; looking must not make a file."""
        return self._file.exists()

    @contextmanager
    def _changing(self) -> Generator[sqlite3.Connection]:
        """One transaction, after what has ended was ended."""
        with self._lock, self._told():
            if self._base is None:
                self._base = open_shared(self._file, _prepare)
            with self._base as base:
                base.execute("BEGIN IMMEDIATE")
                self._sweep(base)
                yield base

    @contextmanager
    def _asking(self) -> Generator[sqlite3.Connection]:
        with self._told():
            if self._reading is None:
                self._reading = open_shared(self._file, _prepare)
            yield self._reading

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            told = f"the approvals cannot be used: {error}"
            raise StorageUnavailable(told, where=str(self._file)) from None

    def close(self) -> None:
        """Close the file; what still waits for this process expires."""
        with self._lock:
            for base in filter(None, (self._base, self._reading)):
                base.close()
            self._base = self._reading = None
            if self._holder is not None:
                os.close(self._holder[1])
                with suppress(OSError):
                    (self.folder / self._holder[0]).unlink()
                self._holder = None


def _prepare(base: sqlite3.Connection) -> None:
    for statement in SCHEMA:
        base.execute(statement)
