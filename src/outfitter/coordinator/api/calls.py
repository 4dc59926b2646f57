"""The record of tool calls over HTTP, in the order in which they were taken into the audit database.

The database is read by one thread at a time, off the loop. A page is bounded twice: so many calls, and so many rows
looked at, since a moment in time is not something the database is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec

from outfitter.coordinator.api.answers import answer
from outfitter.coordinator.api.models import CallList, CallShown, CallsQuery
from outfitter.coordinator.api.problems import Turned
from outfitter.coordinator.api.routing import Answer, Route

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office
    from outfitter.storage import AuditStore

_AT_A_TIME = 1000
_LOOKS = 20
_DIGITS = 18
_KEPT = ("arguments", "result")


async def _list(office: Office, asked: Asked[CallsQuery]) -> Response:
    store, query = office.coordinator.audit, asked.query
    after, since = _after(query.cursor), _moment(query.since)
    if store is None:
        return answer(CallList([]))
    given = {"agent": asked.agent or "", "server": query.server, "tool": query.tool, "outcome": query.outcome}
    wanted = {name: value for name, value in given.items() if value}
    async with office.reading:
        find = partial(_find, store, after, query.limit, wanted, since)
        return answer(await anyio.to_thread.run_sync(find))


def _find(store: AuditStore, after: int, limit: int, wanted: Mapping[str, str], since: float) -> CallList:
    """A page of calls, with the place where the next one begins."""
    found: list[CallShown] = []
    size = limit + 1 if since <= 0 else _AT_A_TIME
    for _ in range(_LOOKS):
        rows = store.calls(after, size, wanted)
        for row in rows:
            if row["started_at"] >= since:
                if len(found) == limit:
                    return CallList(found, str(after))
                found.append(_shown(row))
            after = row["seq"]
        if len(rows) < size:
            return CallList(found)
    return CallList(found, str(after))


def _shown(row: dict[str, Any]) -> CallShown:
    kept: dict[str, Any] = {name: None if row[name] is None else msgspec.Raw(row[name].encode()) for name in _KEPT}
    return CallShown(**{name: row[name] for name in CallShown.__struct_fields__} | kept)


def _after(cursor: str) -> int:
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _DIGITS):
        raise Turned(400, "bad_query", "this is no cursor of this list", hint="take next_cursor as it was given")
    return int(cursor or 0)


def _moment(text: str) -> float:
    if not text:
        return 0.0
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))  # a plus sign that nobody quoted
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise Turned(400, "bad_query", "'since' is no moment", hint="such as 2030-01-31T12:00:00Z") from None


ROUTES = (
    Route("GET", "/calls", "The record of tool calls, oldest first", _list, Answer(model=CallList), "calls.read",
          CallsQuery, concerns="query"),
)  # fmt: skip
