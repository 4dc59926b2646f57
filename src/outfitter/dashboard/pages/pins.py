"""Definitions of tools that wait for a person: which they are, what changed, and the buttons that decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.dashboard.looks import path_part
from outfitter.errors import OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_STATES = ("pending", "pinned", "rejected")
_MOST = 200


async def show_all(page: Page) -> Response:
    """What waits, or what is in the state that was asked for."""
    server, state = page.asked("server"), page.asked("state", "pending")
    wanted = state if state in _STATES else None
    found = await page.api.get("/pins", server=server or None, state=wanted, limit=_MOST)
    command = "outfitter pins list" + (f" {server}" if server else "")
    return page.render(
        "pins.html",
        command=command,
        items=found["items"],
        server=server,
        state=wanted or "",
        states=_STATES,
        most=_MOST,
    )


async def show_one(page: Page) -> Response:
    """One definition beside what was approved before it."""
    return await _show(page)


async def approve(page: Page) -> Response:
    """Approve the definition that was looked at."""
    return await _decide(page, "approve")


async def reject(page: Page) -> Response:
    """Reject it."""
    return await _decide(page, "reject")


async def _decide(page: Page, what: str) -> Response:
    await page.form()
    try:
        await page.api.send("POST", f"/pins/{path_part(page.names['id'])}/{what}")
    except OutfitterError as error:
        return await _show(page, error)
    return page.go("/ui/pins")


async def _show(page: Page, error: OutfitterError | None = None) -> Response:
    one = await page.api.get(f"/pins/{path_part(page.names['id'])}")
    named = one["name"] if one["kind"] == "tool" else "--instructions"
    command = f"outfitter pins diff {one['server']} {named}"
    return page.render("pin.html", command=command, one=one, error=error)
