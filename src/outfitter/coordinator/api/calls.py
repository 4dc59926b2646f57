"""The record of tool calls over HTTP, in the order in which they were taken into the audit database.

The database is read by one thread at a time, off the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec

from outfitter.coordinator.api.answers import answer
from outfitter.coordinator.api.models import CallList, CallShown, CallsQuery, CallsWanted
from outfitter.coordinator.api.problems import Turned
from outfitter.coordinator.api.routing import Answer, Route

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office
    from outfitter.storage import AuditStore

_DIGITS = 18
_KEPT = ("arguments", "result")


async def _list(office: Office, asked: Asked[CallsQuery]) -> Response:
    store, query = office.coordinator.audit, asked.query
    last, wanted = _last(query.cursor), wanted_of(query, asked.agent)
    if store is None:
        return answer(CallList([]))
    async with office.reading:
        return answer(await anyio.to_thread.run_sync(_find, store, last, query, wanted))


def wanted_of(query: CallsWanted, agent: str | None) -> dict[str, str]:
    """What a query chooses calls by, as the audit is asked; Turned when a moment is none."""
    given = {
        "agent": agent or "", "server": query.server, "tool": query.tool, "decision": query.decision,
        "outcome": query.outcome, "run": query.run, "since": _moment("since", query.since),
        "until": _moment("until", query.until),
    }  # fmt: skip
    return {name: value for name, value in given.items() if value}


def _find(store: AuditStore, last: int, query: CallsQuery, wanted: Mapping[str, str]) -> CallList:
    """A page of calls, with the place where the next one begins."""
    limit = query.limit
    rows = store.calls(last, limit + 1, wanted, newest_first=query.order == "newest")
    following = str(rows[limit - 1]["seq"]) if len(rows) > limit else None
    return CallList([_shown(row) for row in rows[:limit]], following)


def _shown(row: dict[str, Any]) -> CallShown:
    kept: dict[str, Any] = {name: None if row[name] is None else msgspec.Raw(row[name].encode()) for name in _KEPT}
    return CallShown(**{name: row[name] for name in CallShown.__struct_fields__} | kept)


def _last(cursor: str) -> int:
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _DIGITS):
        raise Turned(400, "bad_query", "this is no cursor of this list", hint="take next_cursor as it was given")
    return int(cursor or 0)


def _moment(name: str, text: str) -> str:
    """The moment in seconds, as the audit is asked for it; nothing when none is given."""
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))  # a plus sign that nobody quoted
        return repr((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise Turned(400, "bad_query", f"'{name}' is no moment", hint="such as 2030-01-31T12:00:00Z") from None


ROUTES = (
    Route("GET", "/calls", "The record of tool calls, oldest or newest first", _list, Answer(model=CallList),
          "calls.read", CallsQuery, concerns="query"),
)  # fmt: skip
