"""API tokens over HTTP: made and shown once, listed without their text, taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from outfitter.coordinator.access.tokens import Scope
from outfitter.coordinator.api.answers import answer, nothing, shown
from outfitter.coordinator.api.models import NoQuery, TokenAsked, TokenList, TokenMade, TokenShown
from outfitter.coordinator.api.routing import Answer, Route

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office


async def _list(office: Office, asked: Asked[NoQuery]) -> Response:  # noqa: ARG001 - every handler has this shape
    records = await office.access.tokens.records()
    return answer(TokenList([shown(record, TokenShown) for record in records]))


async def _issue(office: Office, asked: Asked[NoQuery]) -> Response:
    wanted = asked.read(TokenAsked)
    ending = None if wanted.expires_in is None else datetime.now(UTC) + timedelta(seconds=wanted.expires_in)
    token, record = await office.access.tokens.issue(
        wanted.role,
        by=asked.author.name,
        scope=Scope(wanted.agent, wanted.server, wanted.run_id),
        label=wanted.label,
        expires_at=ending,
    )
    made = shown(record, TokenMade, token=token)
    return answer(made, 201, location=f"{asked.prefix}/tokens/{record.id}")


async def _revoke(office: Office, asked: Asked[NoQuery]) -> Response:
    await office.access.tokens.revoke(asked.id)
    return nothing()


ROUTES = (
    Route("GET", "/tokens", "List tokens, without their text", _list, Answer(model=TokenList), "tokens.manage"),
    Route("POST", "/tokens", "Make a token; it is shown this once", _issue, Answer(201, TokenMade, ("Location",)),
          "tokens.manage", body=TokenAsked, problems=(409,)),
    Route("DELETE", "/tokens/{id}", "Take a token back, at once", _revoke, Answer(204), "tokens.manage"),
)  # fmt: skip
