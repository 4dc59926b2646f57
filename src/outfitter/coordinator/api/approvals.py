"""Calls that wait for a person, over HTTP: who may look sees them, an admin says yes or no.

The file is used off the loop. Where calls wait and what an answer is bound to is ``storage.approvals``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio.to_thread
from msgspec import Meta, Struct

from outfitter.coordinator.api.answers import answer
from outfitter.coordinator.api.models import LIMIT, Limit, NoQuery, Word
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.errors import NotFound
from outfitter.policy import Verdict

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office
    from outfitter.storage import Approval, ApprovalStore

ApprovalStateName = Literal["waiting", "approved", "denied", "used", "expired"]
Moment = Annotated[str, Meta(description="As ISO 8601, UTC; empty when it has not come.")]


class ApprovalShown(Struct, frozen=True, kw_only=True):
    """A call that a rule asks a person about. Its arguments are masked; an answer holds for these arguments only."""

    id: str
    state: ApprovalStateName
    agent: str
    run: str
    server: str
    tool: str
    shown: Annotated[str, Meta(description="The name that the model used.")]
    arguments: Any
    digest: Annotated[str, Meta(description="SHA-256 of the arguments as they are sent.")]
    reason: str
    asked_by: Annotated[str, Meta(description="The id of the token whose call it is.")]
    asked_at: Moment
    waits_until: Annotated[str, Meta(description="Until when the call waits; empty: nobody waits for it now.")]
    expires_at: Annotated[str, Meta(description="Until when it can be answered; of an answer: until when it counts.")]
    seconds_left: Annotated[float, Meta(description="Until the call stops to wait, or else until it expires.")]
    decided_at: Moment
    decided_by: str
    decided_where: Annotated[str, Meta(description="`API`, `command line`, or `client`: the person there was asked.")]


class ApprovalList(Struct, frozen=True):
    """Calls that a person was asked about, the newest first."""

    items: list[ApprovalShown]


class ApprovalsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which of them."""

    agent: Word = ""
    state: Literal["", "waiting", "approved", "denied", "used", "expired"] = ""
    limit: Limit = LIMIT


def _told(one: Approval) -> ApprovalShown:
    return ApprovalShown(**one.to_json())


async def _list(office: Office, asked: Asked[ApprovalsQuery]) -> Response:
    store, query = office.approvals, asked.query
    if store is None:
        return answer(ApprovalList([]))
    states: tuple[ApprovalStateName, ...] = (query.state,) if query.state else ()
    found = await anyio.to_thread.run_sync(partial(store.list, states, asked.agent or None, query.limit))
    return answer(ApprovalList([_told(one) for one in found]))


async def _read(office: Office, asked: Asked[NoQuery]) -> Response:
    found = await _find(_store(office, asked.id), asked.id)
    office.allow(asked.who, "approvals.read", found.agent)
    return answer(_told(found))


async def _decide(office: Office, asked: Asked[NoQuery], *, is_yes: bool) -> Response:
    store = _store(office, asked.id)
    by = "somebody" if asked.who is None else asked.who.name
    verdict = Verdict(is_yes=is_yes, by=by, where="API")
    return answer(_told(await anyio.to_thread.run_sync(store.decide, asked.id, verdict)))


def _store(office: Office, ident: str) -> ApprovalStore:
    if office.approvals is None:
        raise NotFound(f"there is no approval '{ident}'", hint="outfitter approvals list")
    return office.approvals


async def _find(store: ApprovalStore, ident: str) -> Approval:
    return await anyio.to_thread.run_sync(store.get, ident)


ROUTES = (
    Route("GET", "/approvals", "Calls that a person is or was asked about, the newest first", _list,
          Answer(model=ApprovalList), "approvals.read", ApprovalsQuery, concerns="query"),
    Route("GET", "/approvals/{id}", "Read one of them", _read, Answer(model=ApprovalShown), "approvals.read",
          concerns="content"),
    Route("POST", "/approvals/{id}/approve", "Let the call be made, once; 409 when it is too late",
          partial(_decide, is_yes=True), Answer(model=ApprovalShown), "approvals.decide", problems=(409,)),
    Route("POST", "/approvals/{id}/deny", "Refuse the call; 409 when it is too late",
          partial(_decide, is_yes=False), Answer(model=ApprovalShown), "approvals.decide", problems=(409,)),
)  # fmt: skip
