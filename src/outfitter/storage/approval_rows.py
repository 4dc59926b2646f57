"""Wishes as rows of a table, and the few statements that everything else is made of: found, counted, used once."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec

from outfitter.errors import NotFound
from outfitter.policy import Verdict

ApprovalState: TypeAlias = Literal["waiting", "approved", "denied", "used", "expired"]


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
SCHEMA = (
    f"CREATE TABLE IF NOT EXISTS approvals ({_SHOWN}, binding, holder, PRIMARY KEY (id))",
    "CREATE INDEX IF NOT EXISTS approvals_by_binding ON approvals (binding)",
)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds") if seconds else ""


def find(base: sqlite3.Connection, where: str, values: tuple[object, ...], rest: str = "") -> list[Approval]:
    """The rows for which a condition holds."""
    asked = f"SELECT {_SHOWN} FROM approvals WHERE {where} {rest}"  # noqa: S608 - ours
    rows: list[tuple[Any, ...]] = base.execute(asked, values).fetchall()
    return [Approval(*row) for row in rows]


def get(base: sqlite3.Connection, ident: str) -> Approval:
    """The row of an id; NotFound when there is none."""
    found = find(base, "id = ?", (ident,))
    if not found:
        raise unknown(ident)
    return found[0]


def use(base: sqlite3.Connection, where: str, values: tuple[object, ...]) -> Approval | None:
    """The oldest yes of these, used up by this: nobody else gets it."""
    found = find(base, f"{where} AND state = 'approved'", values, "ORDER BY decided_at LIMIT 1")
    if not found:
        return None
    base.execute("UPDATE approvals SET state = 'used', holder = '', waits_until = 0 WHERE id = ?", (found[0].id,))
    return get(base, found[0].id)


def count(base: sqlite3.Connection, where: str, value: object) -> int:
    """For how many rows a condition holds."""
    return int(base.execute(f"SELECT count(*) FROM approvals WHERE {where}", (value,)).fetchone()[0])  # noqa: S608 - ours


def unknown(ident: str) -> NotFound:
    """The answer to an id that nobody knows."""
    return NotFound(f"there is no approval '{ident}'", hint="outfitter approvals list")
