"""Runs: start one, see how it goes with what it tells, the sessions around it, and stop it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outfitter.dashboard.looks import path_part
from outfitter.errors import Forbidden, NotFound, OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_PAGE, _MOST_AGENTS, _MOST_SESSIONS = 50, 500, 100
_UNTOLD = {"agent": "", "prompt": ""}


async def show_all(page: Page) -> Response:
    """The runs, newest first, and the form that starts one."""
    return await _show(page, {**_UNTOLD, "agent": page.asked("agent")})


async def start(page: Page) -> Response:
    """Start a run; what is wrong is said beside what was asked."""
    form = await page.form()
    document = {"agent_name": form.get("agent", ""), "prompt": form.get("prompt", "")}
    try:
        run = await page.api.send("POST", "/runs", document)
    except OutfitterError as error:
        return await _show(page, {**_UNTOLD, **form}, error)
    return page.go(f"/ui/runs/{path_part(run['id'])}")


async def _show(page: Page, form: dict[str, str], error: OutfitterError | None = None) -> Response:
    state, cursor = page.asked("state"), page.asked("cursor")
    found = await page.api.get("/runs", limit=_PAGE, state=state or None, cursor=cursor or None)
    agents = await page.api.get("/agents", limit=_MOST_AGENTS)
    runners = await page.api.get("/runners")
    return page.render(
        "runs.html", status=200 if error is None else 422, command="outfitter runs list", items=found["items"],
        following=found["next_cursor"], agents=[one["id"] for one in agents["items"]], runners=runners["items"],
        state=state, form=form, error=error,
    )  # fmt: skip


async def show_one(page: Page) -> Response:
    """One run with its events and the sessions around its own."""
    run_id = page.names["id"]
    place = f"/runs/{path_part(run_id)}"
    run: dict[str, Any] = await page.api.get(place)
    events = await page.api.get(f"{place}/events", limit=200)
    tree = await _tree(page, run["session_id"])
    return page.render("run.html", command=f"outfitter runs show {run_id}", run=run, events=events["events"], tree=tree)


async def _tree(page: Page, session_id: str) -> list[tuple[int, dict[str, Any]]]:
    """The session of a run with its ancestors and all that it started, each with its depth, the oldest first."""
    above, here = list[dict[str, Any]](), await _session(page, session_id)
    while here is not None and here["parent_id"] is not None and len(above) < _MOST_SESSIONS:
        above.append(here)
        here = await _session(page, here["parent_id"])
    found: list[tuple[int, dict[str, Any]]] = []
    waiting = [(0, here or above[-1])] if here or above else []
    while waiting and len(found) < _MOST_SESSIONS:
        depth, one = waiting.pop()
        found.append((depth, one))
        children = [await _session(page, child) for child in one["children"][:_MOST_SESSIONS]]
        waiting += [(depth + 1, child) for child in reversed(children) if child is not None]
    return found


async def _session(page: Page, session_id: str) -> dict[str, Any] | None:
    """One session; None when it may not be seen, or is gone."""
    try:
        return await page.api.get(f"/sessions/{path_part(session_id)}")
    except (NotFound, Forbidden):
        return None


async def stop(page: Page) -> Response:
    """Stop a run."""
    await page.form()
    place = path_part(page.names["id"])
    await page.api.send("POST", f"/runs/{place}/stop")
    return page.go(f"/ui/runs/{place}")
