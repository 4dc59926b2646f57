"""Calls: the newest as they come, those of before by filters, in figures and as files, and one of them whole."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from outfitter.dashboard.call_filters import DECISIONS, OUTCOMES, RANGES, CallFilter
from outfitter.dashboard.charts import chart_of, spans_of
from outfitter.dashboard.exporting import as_csv, as_json
from outfitter.errors import Invalid, NotFound

if TYPE_CHECKING:
    from outfitter.dashboard.page import Page

_PAGE = 50
_PIECES = 60
_MOST_EXPORTED, _AT_A_TIME = 10_000, 500
_AROUND_SECONDS, _MOST_AROUND = 3600.0, 60
_FORMS = {"csv": ("text/csv; charset=utf-8", as_csv), "json": ("application/json", as_json)}


async def show_all(page: Page) -> Response:
    """The calls that were recorded, newest first; the first page follows what happens."""
    wanted, cursor = CallFilter.read(page.request.query_params), page.asked("cursor")
    found = await page.api.get("/calls", order="newest", limit=_PAGE, cursor=cursor or None, **wanted.for_api())
    traffic = await page.api.get("/call-figures", pieces=_PIECES, **wanted.for_figures())
    return page.render(
        "calls_live.html" if page.is_part else "calls.html", command=wanted.command, items=found["items"],
        following=found["next_cursor"], wanted=wanted, cursor=cursor, traffic=traffic,
        chart=chart_of(traffic["pieces"]), outcomes=OUTCOMES, decisions=DECISIONS, ranges=tuple(RANGES),
        most_exported=_MOST_EXPORTED,
    )  # fmt: skip


async def export(page: Page) -> Response:
    """The calls that the filters choose, newest first, as a file."""
    if page.asked("format") not in _FORMS:
        raise Invalid("there is no such format", hint="csv or json")
    kind, write = _FORMS[page.asked("format")]
    asked = CallFilter.read(page.request.query_params).for_api()
    calls: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(calls) < _MOST_EXPORTED:
        found = await page.api.get("/calls", order="newest", limit=_AT_A_TIME, cursor=cursor, **asked)
        calls += found["items"]
        cursor = found["next_cursor"]
        if cursor is None:
            break
    name = f'attachment; filename="outfitter-calls.{page.asked("format")}"'
    return Response(write(calls), media_type=kind, headers={"content-disposition": name})


async def show_one(page: Page) -> Response:
    """One call."""
    number = page.names["number"]
    if not (number.isascii() and number.isdigit()):
        raise NotFound("there is no such call")
    found = await page.api.get("/calls", limit=1, cursor=str(int(number) - 1))
    if not found["items"] or str(found["items"][0]["seq"]) != number:
        raise NotFound("there is no such call", hint="it may be older than the records that are kept")
    call = found["items"][0]
    around = await _around(page, call)
    command = CallFilter.read({"agent": call["agent"], "run": call["run_id"]}).command
    return page.render(
        "call.html", command=f"{command} --json", call=call, spans=spans_of(around, call["seq"]),
    )  # fmt: skip


async def _around(page: Page, call: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of the same run within an hour, this one among them; a call outside of any run stands alone."""
    if not call["run_id"]:
        return [call]
    since, until = (_moment(call["started_at"] + step) for step in (-_AROUND_SECONDS, _AROUND_SECONDS))
    found = await page.api.get("/calls", run=call["run_id"], since=since, until=until, limit=_AT_A_TIME)
    near = sorted(found["items"], key=lambda one: abs(one["started_at"] - call["started_at"]))[:_MOST_AROUND]
    return near if any(one["seq"] == call["seq"] for one in near) else [call]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
