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
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from outfitter.errors import Conflict, NotFound, StorageUnavailable
from outfitter.policy import Verdict, Wish

ApprovalState: TypeAlias = Literal["waiting", "approved", "denied", "used", "expired"]
_LONGEST_SHOWN = 16 * 1024
_KEPT_SECONDS = 7 * 24 * 3600.0
"""How long after its end a wish can still be looked at."""
_ENDED = {
    "used": ("has been used already", "a yes holds for one call"),
    "expired": ("has expired", "have the agent call again"),
}


@dataclass(frozen=True, slots=True)
class Approval:
    """One wish, and what has come of it. Moments are seconds since 1970."""

    id: str
    state: ApprovalState
    agent: str
    run: str
    server: str
    tool: str
    shown: str
    arguments: str
    """JSON, masked."""
    digest: str
    reason: str
    asked_by: str
    asked_at: float
    waits_until: float
    """Until when the call waits; 0 when nobody does."""
    expires_at: float
    """Until when it can be answered; of a yes or a no: until when it counts."""
    decided_at: float = 0.0
    decided_by: str = ""
    decided_where: str = ""

    @property
    def verdict(self) -> Verdict:
        """What was said of it."""
        return Verdict(self.state in {"approved", "used"}, self.decided_by, self.decided_where)

    def to_json(self) -> dict[str, Any]:
        """As it is shown: moments as ISO 8601, and how many seconds are left to answer it."""
        now = time.time()
        left = self.waits_until if self.state == "waiting" and self.waits_until > now else self.expires_at
        told = {name: getattr(self, name) for name in _FIELDS}
        told |= {name: _moment(getattr(self, name)) for name in _MOMENTS}
        told["arguments"] = msgspec.json.decode(self.arguments)
        return told | {"seconds_left": max(0.0, round(left - now, 1))}


_FIELDS = tuple(one.name for one in fields(Approval))
_MOMENTS = ("asked_at", "waits_until", "expires_at", "decided_at")
_SHOWN = ", ".join(_FIELDS)
_SCHEMA = (
    f"CREATE TABLE IF NOT EXISTS approvals ({_SHOWN}, binding, holder, PRIMARY KEY (id))",
    "CREATE INDEX IF NOT EXISTS approvals_by_binding ON approvals (binding)",
)


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
            if _count(base, waiting, wish.agent) >= most:
                return None
            ident = self._unheld(base, wish) or self._add(base, wish, now)
            until = now + max(0.0, seconds)
            base.execute(
                "UPDATE approvals SET holder = ?, waits_until = ? WHERE id = ?", (self._hold(base), until, ident)
            )
            return _get(base, ident)

    def look(self, ident: str) -> ApprovalState:
        """How a wish stands; cheap, and blocks nobody."""
        with self._asking() as base:
            row = base.execute("SELECT state FROM approvals WHERE id = ?", (ident,)).fetchone()
        return "expired" if row is None else row[0]

    def take(self, ident: str) -> Approval:
        """Use the yes of a wish: it is in the state ``used`` for one who asks, once."""
        with self._changing() as base:
            if _get(base, ident).state == "used":
                raise Conflict(f"approval '{ident}' has been used already")
            return _use(base, "id = ?", (ident,)) or _get(base, ident)

    def leave(self, ident: str) -> None:
        """Nobody waits for it any more; it can be answered all the same."""
        with self._changing() as base:
            base.execute("UPDATE approvals SET holder = '', waits_until = 0 WHERE id = ?", (ident,))

    def answer(self, ident: str, verdict: Verdict) -> Approval:
        """What the person at the client said, if nobody has answered elsewhere: a yes is used at once."""
        with self._changing() as base:
            if _get(base, ident).state == "waiting":
                self._decide(base, ident, verdict)
            return _use(base, "id = ?", (ident,)) or _get(base, ident)

    # ── for people ──

    def decide(self, ident: str, verdict: Verdict) -> Approval:
        """Say yes or no, or the other way round while it counts; NotFound, or Conflict when it is too late."""
        with self._changing() as base:
            found = _get(base, ident)
            if found.state in _ENDED:
                told, hint = _ENDED[found.state]
                raise Conflict(f"approval '{ident}' {told}", hint=hint)
            self._decide(base, ident, verdict)
            return _get(base, ident)

    def get(self, ident: str) -> Approval:
        """One wish; NotFound when there is none of this id."""
        if not self._exists():
            raise _unknown(ident)
        with self._changing() as base:
            return _get(base, ident)

    def list(self, states: Iterable[ApprovalState] = (), agent: str | None = None, limit: int = 200) -> list[Approval]:
        """Wishes in these states, or in any, the newest first."""
        if not self._exists():
            return []
        wanted = tuple(states)
        clauses = [f"state IN ({', '.join('?' * len(wanted))})"] if wanted else []
        clauses += ["agent = ?"] if agent is not None else []
        values = (*wanted, *(() if agent is None else (agent,)))
        with self._changing() as base:
            return _find(
                base, " AND ".join(clauses) or "1", values, f"ORDER BY asked_at DESC, rowid DESC LIMIT {limit}"
            )

    # ── inside one transaction ──

    def _known(self, base: sqlite3.Connection, wish: Wish, now: float) -> Approval | None:
        """A yes that nobody waits for, which is used now; or a no that still counts."""
        used = _use(base, "binding = ? AND holder = ''", (wish.binding,))
        if used is not None:
            return used
        denied = "binding = ? AND state = 'denied' AND expires_at > ?"
        return next(iter(_find(base, denied, (wish.binding, now), "LIMIT 1")), None)

    def _unheld(self, base: sqlite3.Connection, wish: Wish) -> str | None:
        """An equal wish that was left and can still be answered: it is not shown twice."""
        found = _find(base, "binding = ? AND state = 'waiting' AND holder = ''", (wish.binding,), "LIMIT 1")
        return found[0].id if found else None

    def _add(self, base: sqlite3.Connection, wish: Wish, now: float) -> str:
        arguments = msgspec.json.encode(dict(wish.arguments)).decode()
        if len(arguments) > _LONGEST_SHOWN:
            arguments = msgspec.json.encode(f"(too long to be shown: {len(arguments)} characters)").decode()
        ident = secrets.token_hex(6)
        values = (
            ident, "waiting", wish.agent, wish.run, wish.server, wish.tool, wish.shown, arguments, wish.digest,
            wish.reason, wish.asked_by, now, 0.0, now + self.times.valid, 0.0, "", "", wish.binding, "",
        )  # fmt: skip
        base.execute(f"INSERT INTO approvals VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608 - marks only
        return ident

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
                self._base = self._connect()
                for statement in _SCHEMA:
                    self._base.execute(statement)
            with self._base as base:
                base.execute("BEGIN IMMEDIATE")
                self._sweep(base)
                yield base

    @contextmanager
    def _asking(self) -> Generator[sqlite3.Connection]:
        with self._told():
            if self._reading is None:
                self._reading = self._connect()
            yield self._reading

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            told = f"the approvals cannot be used: {error}"
            raise StorageUnavailable(told, where=str(self._file)) from None

    def _connect(self) -> sqlite3.Connection:
        """An open file. One process at a time: changing the mode of a file does not wait for others by itself."""
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            base = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=5.0)
            self._file.chmod(0o600)
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = NORMAL")
        finally:
            os.close(lock)
        return base

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


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds") if seconds else ""


def _find(base: sqlite3.Connection, where: str, values: tuple[object, ...], rest: str = "") -> list[Approval]:
    asked = f"SELECT {_SHOWN} FROM approvals WHERE {where} {rest}"  # noqa: S608 - ours
    rows: list[tuple[Any, ...]] = base.execute(asked, values).fetchall()
    return [Approval(*row) for row in rows]


def _get(base: sqlite3.Connection, ident: str) -> Approval:
    found = _find(base, "id = ?", (ident,))
    if not found:
        raise _unknown(ident)
    return found[0]


def _use(base: sqlite3.Connection, where: str, values: tuple[object, ...]) -> Approval | None:
    """The oldest yes of these, used up by this: nobody else gets it."""
    found = _find(base, f"{where} AND state = 'approved'", values, "ORDER BY decided_at LIMIT 1")
    if not found:
        return None
    base.execute("UPDATE approvals SET state = 'used', holder = '', waits_until = 0 WHERE id = ?", (found[0].id,))
    return _get(base, found[0].id)


def _count(base: sqlite3.Connection, where: str, value: object) -> int:
    return int(base.execute(f"SELECT count(*) FROM approvals WHERE {where}", (value,)).fetchone()[0])  # noqa: S608 - ours


def _unknown(ident: str) -> NotFound:
    return NotFound(f"there is no approval '{ident}'", hint="outfitter approvals list")
