"""Calls: the newest first, by agent, server, tool and outcome, and one of them with all that was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.errors import NotFound

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_PAGE = 50
_FILTERS = ("agent", "server", "tool", "outcome", "since")


async def show_all(page: Page) -> Response:
    """The calls that were recorded."""
    wanted = {name: page.asked(name) for name in _FILTERS}
    given = {name: value for name, value in wanted.items() if value}
    found = await page.api.get("/calls", order="newest", limit=_PAGE, cursor=page.asked("cursor") or None, **given)
    options = " ".join(f"--{name} {value}" for name, value in given.items() if name != "since")
    return page.render(
        "calls.html", command=f"outfitter tail {options}".strip(), items=found["items"],
        following=found["next_cursor"], wanted=wanted,
    )  # fmt: skip


async def show_one(page: Page) -> Response:
    """One call."""
    number = page.names["number"]
    if not (number.isascii() and number.isdigit()):
        raise NotFound("there is no such call")
    found = await page.api.get("/calls", limit=1, cursor=str(int(number) - 1))
    if not found["items"] or str(found["items"][0]["seq"]) != number:
        raise NotFound("there is no such call", hint="it may be older than the records that are kept")
    return page.render("call.html", command="outfitter audit calls --json", call=found["items"][0])
