"""How far the budgets of agents are used, and a button that begins one anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.dashboard.looks import path_part
from outfitter.errors import OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_MOST = 200


async def show(page: Page) -> Response:
    """Every agent that has budgets, or the one that was asked for, with those of a run if one was named."""
    return await _show(page)


async def reset(page: Page) -> Response:
    """Begin one budget anew."""
    form = await page.form()
    wanted = {name: form.get(name, "") for name in ("budget", "scope", "run")}
    agent = page.names["name"]
    try:
        await page.api.send("POST", f"/agents/{path_part(agent)}/budgets/reset", wanted)
    except OutfitterError as error:
        return await _show(page, error)
    run = f"&run={path_part(wanted['run'])}" if wanted["run"] else ""
    return page.go(f"/ui/budgets?agent={path_part(agent)}{run}")


async def _show(page: Page, error: OutfitterError | None = None) -> Response:
    agent, run = page.asked("agent"), page.asked("run")
    found = await page.api.get("/budgets", agent=agent or None, run=run or None, limit=_MOST)
    command = "outfitter budgets" + (f" {agent}" if agent else "") + (f" --run {run}" if run else "")
    return page.render(
        "budgets.html",
        command=command,
        items=found["items"],
        resets=found["resets"],
        agent=agent,
        run=run,
        error=error,
    )
