"""What the tools of an agent cost a model, over HTTP: estimated tokens of definitions, as servers were last seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread
from msgspec import Struct

from outfitter.coordinator.api.answers import answer
from outfitter.coordinator.api.models import NoQuery
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.resolution import resolve, weigh_seen

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office


class SearchShown(Struct, frozen=True):
    """How the agent finds its tools."""

    mode: str
    threshold: int


class WeightShown(Struct, frozen=True):
    """What the definition of one tool costs."""

    server: str
    name: str
    shown: str
    tokens: int


class WeightsShown(Struct, frozen=True, kw_only=True):
    """What all definitions cost, the heaviest first; `tokens_read` is what a model reads before its first word."""

    agent: str
    tool_search: SearchShown
    searched: bool
    tokens: int
    tokens_read: int
    servers: dict[str, int]
    unseen: list[str]
    tools: list[WeightShown]


async def _weights(office: Office, asked: Asked[NoQuery]) -> Response:
    plan = resolve(asked.id, office.coordinator.live.catalog)
    # Hundreds of definitions take a moment, in which others are answered.
    found = await anyio.to_thread.run_sync(weigh_seen, plan, office.recall)
    return answer(found.to_json())


ROUTES = (
    Route("GET", "/agents/{name}/tool-tokens", "About how many tokens the definitions of its tools take, as last seen",
          _weights, Answer(200, WeightsShown), "registry.read", concerns="path", problems=(409, 422)),
)  # fmt: skip
