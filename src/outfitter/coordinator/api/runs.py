"""Runs and sessions over HTTP. A token that is bound to an agent sees and starts those of its agent only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from outfitter.coordinator.api.answers import answer, shown
from outfitter.coordinator.api.documents import RunDocument
from outfitter.coordinator.api.models import (
    NoQuery,
    RunList,
    RunShown,
    RunsQuery,
    SessionDetail,
    SessionList,
    SessionShown,
    SessionsQuery,
)
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.coordinator.values import RunFilter
from outfitter.errors import Conflict

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office


async def _start(office: Office, asked: Asked[NoQuery]) -> ASGIApp:
    document = asked.document()
    named = document.get("agent_name")
    office.allow(asked.who, "runs.start", named if isinstance(named, str) else None)
    if asked.who is not None and asked.who.agent is not None:
        for session in _sessions_named(document):
            await office.coordinator.runs.need_session(session, asked.who.agent)
    elsewhere = await _who_holds(office, asked, document.get("parent_session_id"))
    if elsewhere is not None:
        return elsewhere
    run = await office.coordinator.runs.start(document, asked.author)
    return answer(shown(run, RunShown), 201, location=f"{asked.prefix}/runs/{run.id}")


async def _who_holds(office: Office, asked: Asked[NoQuery], parent: object) -> ASGIApp | None:
    """The process that holds the credentials which a session would inherit, to answer in the place of this one."""
    if office.pass_on is None or not isinstance(parent, str):
        return None
    holder = await office.coordinator.runs.holder_of(session_id=parent)
    path = f"{asked.prefix}/runs"
    return None if holder is None else office.pass_on(holder, asked.method, path, asked.headers, asked.body)


def _sessions_named(document: Mapping[str, object]) -> list[str]:
    """The sessions that a run would go on with or inherit from; what is no text is refused when the run is read."""
    fields = ["parent_session_id"]
    if document.get("type") == "resume_session":
        fields.append("session_id")
    return [name for name in map(document.get, fields) if isinstance(name, str)]


async def _list(office: Office, asked: Asked[RunsQuery]) -> Response:
    query = asked.query
    wanted = RunFilter(agent=asked.agent, state=query.state or None, oldest_first=query.order == "oldest")
    page = await office.coordinator.runs.list(wanted, cursor=query.cursor or None, limit=query.limit)
    return answer(RunList([shown(run, RunShown) for run in page.items], page.next_cursor))


async def _read(office: Office, asked: Asked[NoQuery]) -> Response:
    run = await office.coordinator.runs.get(asked.id)
    office.allow(asked.who, "runs.read", run.agent_name)
    return answer(shown(run, RunShown))


async def _stop(office: Office, asked: Asked[NoQuery]) -> Response:
    runs, tokens = office.coordinator.runs, office.access.tokens
    office.allow(asked.who, "runs.stop", (await runs.get(asked.id)).agent_name)
    try:
        run = await runs.stop(asked.id, asked.author)
    except Conflict:
        await tokens.end_run(asked.id)  # it has ended: a token that was made for it since is of no use
        raise
    if run.state == "stopped":
        await tokens.look_again()
    return answer(shown(run, RunShown))


async def _sessions(office: Office, asked: Asked[SessionsQuery]) -> Response:
    query = asked.query
    wanted = RunFilter(agent=asked.agent, state=query.state or None)
    page = await office.coordinator.runs.sessions(wanted, cursor=query.cursor or None, limit=query.limit)
    return answer(SessionList([shown(item, SessionShown) for item in page.items], page.next_cursor))


async def _session(office: Office, asked: Asked[NoQuery]) -> Response:
    found = await office.coordinator.runs.session(asked.id)
    office.allow(asked.who, "runs.read", found.agent)
    return answer(shown(found, SessionDetail))


ROUTES = (
    Route("GET", "/runs", "List runs, the newest or the oldest first", _list, Answer(model=RunList), "runs.read",
          RunsQuery, concerns="query"),
    Route("POST", "/runs", "Start a run; a refusal names every problem and leaves nothing behind", _start,
          Answer(201, RunShown, ("Location",)), "runs.start", body=RunDocument, concerns="content", problems=(409,)),
    Route("GET", "/runs/{id}", "Read a run", _read, Answer(model=RunShown), "runs.read", concerns="content"),
    Route("POST", "/runs/{id}/stop", "Stop a run; 409 when it has ended", _stop, Answer(model=RunShown), "runs.stop",
          concerns="content", problems=(409,)),
    Route("GET", "/sessions", "List sessions, newest first", _sessions, Answer(model=SessionList), "runs.read",
          SessionsQuery, concerns="query"),
    Route("GET", "/sessions/{id}", "Read a session with its parent, children and plan", _session,
          Answer(model=SessionDetail), "runs.read", concerns="content"),
)  # fmt: skip
