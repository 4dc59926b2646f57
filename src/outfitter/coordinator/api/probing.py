"""One server tried over HTTP: whether it answers, and which tools it tells. Nothing is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from outfitter.coordinator.api.answers import answer
from outfitter.coordinator.api.models import Json, NoQuery
from outfitter.coordinator.api.routing import Answer, Route

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office


class ProbeShown(Struct, frozen=True, kw_only=True):
    """How a server answered; `error` says why it did not."""

    state: str
    era: str
    version: str
    milliseconds: float
    error: str
    tools: list[Json]


async def _probe(office: Office, asked: Asked[NoQuery]) -> Response:
    entry = await office.coordinator.entries.get("mcp-servers", asked.id)
    found = await office.probe(entry.id)
    return answer(
        ProbeShown(
            state=found.state, era=found.era, version=found.version, milliseconds=found.milliseconds,
            error=found.error, tools=[dict(tool) for tool in found.tools],
        )
    )  # fmt: skip


ROUTES = (
    Route("POST", "/mcp-servers/{id}/probe", "Connect it as it is, and say how it answers and which tools it has",
          _probe, Answer(200, ProbeShown), "registry.write"),
)  # fmt: skip
