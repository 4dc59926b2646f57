"""What runners ask: to begin a run, to tell of it, to finish it, and to be known as alive.

A token that is bound to an agent executes runs of that agent only. What a run tells is shown to whoever may see it.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import msgspec

from outfitter.coordinator.api.answers import answer, nothing, shown
from outfitter.coordinator.api.execution_models import (
    LONGEST_EVENT,
    BeatShown,
    BeginAsked,
    EventsAsked,
    FinishAsked,
    GatewayShown,
    RunEventAsked,
    RunEventList,
    RunEventShown,
    RunEventsQuery,
    RunnerAsked,
    RunnerList,
    RunnerShown,
    WorkOrderShown,
)
from outfitter.coordinator.api.models import NoQuery, RunShown
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.coordinator.executing import Claim
from outfitter.coordinator.reading import check_told
from outfitter.errors import Invalid, InvalidDocument
from outfitter.resolution import ORCHESTRATOR_URL
from outfitter.storage import Ending, RunEvent, RunnerRecord, Speaker, Telling, TokenRecord

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office

_MOST_EVENTS = 1024 * 1024
_MOST_RESULT = 4 * 1024 * 1024


async def _begin(office: Office, asked: Asked[NoQuery]) -> Response:
    wanted = asked.read(BeginAsked)
    await _allow(office, asked)
    url = wanted.values.orchestrator_mcp_url
    values = {} if url is msgspec.UNSET else {ORCHESTRATOR_URL: url}
    made: list[tuple[str, TokenRecord]] = []

    def make_token(agent: str, run_id: str, seconds: float) -> TokenRecord:
        made.append(office.access.tokens.draft_of_run(agent, run_id, seconds, by=asked.author.name))
        return made[-1][1]

    claim = Claim(wanted.runner, values, wanted.instead_of, wanted.attempt, _speaker(asked))
    order = await office.coordinator.executions.begin(asked.id, claim, make_token, asked.author)
    token, record = made[-1]
    await office.access.tokens.begun(record)
    home = f"{_address(office, asked)}/mcp/{record.agent}"
    gateway = GatewayShown(
        url=home,
        servers={alias: f"{home}/{alias}" for alias in order.aliases},
        token=token,
        expires_at=record.expires_at or "",
    )
    run = shown(order.run, RunShown)
    return answer(WorkOrderShown(run=run, attempt=order.attempt, agent=dict(order.agent), gateway=gateway))


def _address(office: Office, asked: Asked[NoQuery]) -> str:
    """Where the gateway is, as the runner called it. What stands in a header goes back to whoever sent it, only."""
    if office.address:
        return office.address.rstrip("/")
    scheme = "https" if asked.headers.get(b"x-forwarded-proto", b"").lower() == b"https" else "http"
    return f"{scheme}://{asked.headers[b'host'].decode('ascii')}"


async def _append(office: Office, asked: Asked[NoQuery]) -> Response:
    told = asked.decode(EventsAsked)
    await _allow(office, asked)
    events = [_event(place, event) for place, event in enumerate(told.events)]
    telling = Telling(told.attempt, told.first, events)
    await office.coordinator.executions.append(asked.id, telling, _speaker(asked))
    return nothing()


def _event(place: int, event: RunEventAsked) -> RunEvent:
    try:
        check_told(event.data)
        at = event.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        size = len(msgspec.json.encode(event.data))
    except Invalid as error:
        raise error.under("events", place, "data") from None
    except (OverflowError, ValueError) as error:
        raise InvalidDocument(f"this is no event: {error}", source="").under("events", place) from None
    if size > LONGEST_EVENT:
        message = f"an event holds at most {LONGEST_EVENT // 1024} KiB"
        raise InvalidDocument(message, source="", hint="cut long texts").under("events", place, "data")
    return RunEvent(event.type, at, event.data)


async def _events(office: Office, asked: Asked[RunEventsQuery]) -> Response:
    office.allow(asked.who, "runs.read", (await office.coordinator.runs.get(asked.id)).agent_name)
    executions, query = office.coordinator.executions, asked.query
    if query.order == "newest":
        found, following = await executions.last_events(asked.id, query.after, query.limit), None
    else:
        found, following = await executions.events(asked.id, query.after, query.limit)
    return answer(RunEventList([shown(event, RunEventShown) for event in found], following))


async def _finish(office: Office, asked: Asked[NoQuery]) -> Response:
    told = asked.decode(FinishAsked)
    try:
        check_told(told.result)
    except Invalid as error:
        raise error.under("result") from None
    await _allow(office, asked)
    error = None if told.error is None else {"code": told.error.code, "message": told.error.message}
    ending = Ending(told.attempt, told.state, told.result, error)
    run = await office.coordinator.executions.finish(asked.id, ending, asked.author, _speaker(asked))
    await office.access.tokens.ended(asked.id)
    return answer(shown(run, RunShown))


async def _beat(office: Office, asked: Asked[NoQuery]) -> Response:
    said = asked.read(RunnerAsked)
    executions = office.coordinator.executions
    runner = RunnerRecord(asked.id, said.capacity, tuple(said.running), tuple(said.executors))
    return answer(BeatShown(list(await executions.beat(runner, _speaker(asked))), executions.times.beat))


async def _list(office: Office, asked: Asked[NoQuery]) -> Response:  # noqa: ARG001 - every handler has this shape
    return answer(RunnerList([shown(one, RunnerShown) for one in await office.coordinator.executions.runners()]))


async def _allow(office: Office, asked: Asked[NoQuery]) -> None:
    """Whose run it is matters for those only who are bound to an agent."""
    is_bound = asked.who is not None and asked.who.agent is not None
    agent = (await office.coordinator.runs.get(asked.id)).agent_name if is_bound else None
    office.allow(asked.who, "runs.execute", agent)


def _speaker(asked: Asked[NoQuery]) -> Speaker:
    """Who speaks for a runner: a token of ours, or somebody the identity provider knows. Where nobody is asked, none.

    The two are told apart: an identity provider may call somebody as a token is called.
    """
    who = asked.who
    if who is None:
        return Speaker()
    is_admin = who.role == "admin"
    return Speaker.by_token(who.token_id, is_admin=is_admin) if who.token_id else Speaker(f"sub:{who.name}", is_admin)


ROUTES = (
    Route("POST", "/runs/{id}/begin", "Execute a run from now on; 409 when it is somebody else's, or has ended", _begin,
          Answer(model=WorkOrderShown), "runs.execute", body=BeginAsked, concerns="content", problems=(409,)),
    Route("POST", "/runs/{id}/events", "Tell of a run; what is stored already is ignored, a gap is 409", _append,
          Answer(204), "runs.execute", body=EventsAsked, concerns="content", most_bytes=_MOST_EVENTS, problems=(409,)),
    Route("GET", "/runs/{id}/events", "What a run has told, in order", _events, Answer(model=RunEventList), "runs.read",
          RunEventsQuery, concerns="content"),
    Route("POST", "/runs/{id}/finish", "A run has ended; the same again changes nothing, another end is 409", _finish,
          Answer(model=RunShown), "runs.execute", body=FinishAsked, concerns="content", most_bytes=_MOST_RESULT,
          problems=(409,)),
    Route("GET", "/runners", "List those who execute runs", _list, Answer(model=RunnerList), "runners.read"),
    Route("PUT", "/runners/{id}", "A runner is alive; it hears which of its runs are to stop", _beat,
          Answer(model=BeatShown), "runs.execute", body=RunnerAsked, concerns="content"),
)  # fmt: skip
