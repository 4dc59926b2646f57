"""How good answers are written: JSON by msgspec, with the headers that the route promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec
from starlette.responses import Response

from outfitter.coordinator.api.asking import JSON

S = TypeVar("S", bound=msgspec.Struct)
_encode = msgspec.json.Encoder().encode


def answer(value: object, status: int = 200, **headers: str) -> Response:
    """A value as JSON; ``etag="…"`` and ``location="…"`` become headers."""
    return Response(_encode(value), status, headers or None, JSON)


def answer_document(document: Mapping[str, Any], status: int = 200, **headers: str) -> Response:
    """A document as document 4 prints it."""
    return Response(msgspec.json.format(_encode(dict(document)), indent=2), status, headers, JSON)


def answer_bytes(content: bytes) -> Response:
    """JSON that is written already."""
    return Response(content, media_type=JSON)


def nothing() -> Response:
    """Done, and nothing to say."""
    return Response(status_code=204)


def shown(value: object, model: type[S], **more: object) -> S:
    """A value of the use cases as a model: the attributes of the same names, and more."""
    return model(**{name: plain(getattr(value, name)) for name in model.__struct_fields__ if name not in more}, **more)


def plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A mapping or tuple as JSON writes it."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
