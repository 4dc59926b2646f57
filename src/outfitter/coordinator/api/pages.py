"""What programs around it ask: is it alive, is it ready, how much, and what is the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from outfitter.coordinator.api.asking import JSON, Asked
from outfitter.coordinator.api.models import Json, NoQuery
from outfitter.coordinator.api.problems import Turned
from outfitter.coordinator.api.routing import Answer, Route

if TYPE_CHECKING:
    from outfitter.coordinator.api.office import Office

TEXT = "text/plain"
_FIGURES = "text/plain; version=0.0.4; charset=utf-8"
_OK = 200


async def _health(office: Office, asked: Asked[NoQuery]) -> Response:  # noqa: ARG001 - every handler has this shape
    return Response("alive", media_type=TEXT)


async def _ready(office: Office, asked: Asked[NoQuery]) -> Response:  # noqa: ARG001 - same
    status, text = office.ready()
    if office.closing.is_set():
        status, text = 503, "closing"
    if status != _OK:
        raise Turned(status, "not_ready", text, headers=[("retry-after", "1")])
    if office.coordinator.live.fault is not None:
        text = "ready; the newest revision is not in use"
    return Response(text, media_type=TEXT)


async def _metrics(office: Office, asked: Asked[NoQuery]) -> Response:  # noqa: ARG001 - same
    return Response(office.metrics(), headers={"content-type": _FIGURES})


async def _openapi(office: Office, asked: Asked[NoQuery]) -> Response:  # noqa: ARG001 - same
    return Response(office.description(), media_type=JSON)


ROUTES = (
    Route("GET", "/health", "Whether it is alive", _health, Answer(model=str, media=TEXT)),
    Route("GET", "/ready", "Whether it can serve", _ready, Answer(model=str, media=TEXT)),
    Route("GET", "/metrics", "Figures, as Prometheus reads them", _metrics, Answer(model=str, media=TEXT),
          "metrics.read"),
    Route("GET", "/openapi.json", "This description", _openapi, Answer(model=Json)),
)  # fmt: skip
