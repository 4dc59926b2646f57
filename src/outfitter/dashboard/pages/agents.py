"""Agents, and the effective view of one: what it gets and where every value is from, what not and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.dashboard.looks import path_part

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_PAGE = 100


async def show_all(page: Page) -> Response:
    """Every agent of the registry."""
    asked, cursor = page.asked("q"), page.asked("cursor")
    found = await page.api.get("/agents", limit=_PAGE, q=asked or None, cursor=cursor or None)
    return page.render(
        "agents.html", command="outfitter agents list", items=found["items"], following=found["next_cursor"],
        asked=asked,
    )  # fmt: skip


async def show_one(page: Page) -> Response:
    """What one agent gets."""
    name = page.names["name"]
    place = f"/agents/{path_part(name)}"
    plan = await page.api.get(place, explain=True)
    weights = await page.api.get(f"{place}/tool-tokens")
    record = await page.api.get(f"{place}/document", detail=True)
    history = await page.api.get(f"{place}/history", limit=10)
    return page.render(
        "agent.html", command=f"outfitter explain {name}", name=name, plan=plan, record=record,
        document=record["document"], history=history["items"], weights=weights,
    )  # fmt: skip
