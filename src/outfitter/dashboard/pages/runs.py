"""Runs: start one with headers of its own, see how it goes as it goes, the sessions around it, and stop it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from outfitter.dashboard.form_values import Document, part_of, refuse
from outfitter.dashboard.looks import path_part
from outfitter.dashboard.run_form import RunServer, request_of, servers_of
from outfitter.errors import Forbidden, Invalid, NotFound, OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_PAGE, _MOST_AGENTS, _MOST_SESSIONS, _MOST_EVENTS = 50, 500, 100, 200
_UNTOLD = {"agent": "", "prompt": ""}
_ENDED = ("done", "failed", "stopped", "lost")


async def show_all(page: Page) -> Response:
    """The runs, newest first, and the form that starts one."""
    return await _show(page, {**_UNTOLD, "agent": page.asked("agent")})


async def start(page: Page) -> Response:
    """Start a run; what is wrong is said beside what was asked."""
    form = {**_UNTOLD, **await page.form()}
    problems: list[Invalid] = []
    try:
        document = request_of(form, await _servers(page, form["agent"], form), problems)
        refuse(problems)
        run = await page.api.send("POST", "/runs", document)
    except OutfitterError as error:
        return await _show(page, form, error)
    return page.go(f"/ui/runs/{path_part(run['id'])}")


async def _show(page: Page, form: Mapping[str, str], error: OutfitterError | None = None) -> Response:
    state, cursor = page.asked("state"), page.asked("cursor")
    found = await page.api.get("/runs", limit=_PAGE, state=state or None, cursor=cursor or None)
    following = found["next_cursor"]
    values: dict[str, Any] = {"items": found["items"], "following": following, "state": state, "cursor": cursor}
    if page.is_part:
        return page.render("runs_live.html", **values)
    agents = await page.api.get("/agents", limit=_MOST_AGENTS)
    runners = await page.api.get("/runners")
    try:
        servers = await _servers(page, form["agent"], form)
    except OutfitterError as refused:
        servers, error = [], error or refused
    command = f"outfitter runs start {form['agent']} --prompt TEXT" if form["agent"] else "outfitter runs list"
    return page.render(
        "runs.html", command=command,
        agents=[one["id"] for one in agents["items"]], runners=runners["items"], form=form, error=error,
        servers=servers, **values,
    )  # fmt: skip


async def _servers(page: Page, agent: str, sent: Mapping[str, str]) -> list[RunServer]:
    """What a run of this agent may be given; nothing as long as none is chosen."""
    if not agent:
        return []
    plan = await page.api.get(f"/agents/{path_part(agent)}", explain=True)
    schemas: dict[str, Document] = {}
    for ref in {one["ref"] for one in plan["servers"] if one["ref"]}:
        record = await page.api.get(f"/mcp-servers/{path_part(ref)}", detail=True)
        schemas[ref] = part_of(record["document"], "header_schema")
    return servers_of(plan, schemas, sent)


async def show_one(page: Page) -> Response:
    """One run with its events and the sessions around its own; it follows what happens."""
    run_id = page.names["id"]
    place = f"/runs/{path_part(run_id)}"
    run: dict[str, Any] = await page.api.get(place)
    events = await page.api.get(f"{place}/events", limit=_MOST_EVENTS, order="newest")
    told = sorted(events["events"], key=lambda event: event["seq"])
    return page.render(
        "run_live.html" if page.is_part else "run.html", command=f"outfitter runs events {run_id}", run=run,
        events=told, most=_MOST_EVENTS, tree=await _tree(page, run["session_id"]), is_ended=run["state"] in _ENDED,
    )  # fmt: skip


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
