"""Calls that wait for a person: which they are, and the buttons that answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.dashboard.looks import path_part
from outfitter.errors import OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_MOST_ENDED = 30


async def show_all(page: Page) -> Response:
    """What waits now, and what was answered lately."""
    return await _show(page)


async def approve(page: Page) -> Response:
    """Let the call be made."""
    return await _decide(page, "approve")


async def deny(page: Page) -> Response:
    """Refuse it."""
    return await _decide(page, "deny")


async def _decide(page: Page, what: str) -> Response:
    await page.form()
    try:
        await page.api.send("POST", f"/approvals/{path_part(page.names['id'])}/{what}")
    except OutfitterError as error:
        return await _show(page, error)
    return page.go("/ui/approvals")


async def _show(page: Page, error: OutfitterError | None = None) -> Response:
    waiting = (await page.api.get("/approvals", state="waiting", limit=200))["items"]
    latest = (await page.api.get("/approvals", limit=_MOST_ENDED + len(waiting)))["items"]
    ended = [one for one in latest if one["state"] != "waiting"][:_MOST_ENDED]
    template = "approvals_live.html" if page.is_part else "approvals.html"
    return page.render(
        template, command="outfitter approvals list --watch", error=error,
        waiting=waiting, ended=ended, may_decide=page.who is None or page.who.role == "admin",
    )  # fmt: skip
