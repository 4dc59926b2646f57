"""What an error of Copilot means here. No text of it holds a credential."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from outfitter.adapters.copilot.config import NAME
from outfitter.adapters.faults import not_reached, refused
from outfitter.adapters.forms import Json
from outfitter.adapters.reading import text
from outfitter.basics import MASK, quote
from outfitter.errors import OutfitterError, Unavailable

_STATUS = re.compile(r"^\d{3} ")
_CREDENTIALS = ("api_key", "bearer_token")
_NO_WAY = ("ECONNREFUSED", "ENOTFOUND", "ECONNRESET", "fetch failed", "Connection error", "onnect")


def understood(error: Json, *, where: str, keys: tuple[str, ...]) -> OutfitterError:
    """A ``session.error`` as Outfitter tells it."""
    said, status = text(error.get("message")), error.get("statusCode")
    if isinstance(status, int):
        return refused(status, _STATUS.sub("", said), where=where, keys=keys)
    if any(sign in said for sign in _NO_WAY):
        return not_reached(where)
    return Unavailable(f"Copilot gave up: {quote(masked(said, keys))}", where=where)


def keys_of(provider: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The credentials that stand in a provider's definition, the longest first."""
    if provider is None:
        return ()
    headers: Mapping[str, Any] = provider.get("headers") or {}
    known = [*(provider.get(name) for name in _CREDENTIALS), *headers.values()]
    return tuple(sorted((key for key in known if isinstance(key, str) and key), key=len, reverse=True))


def masked(said: str, keys: tuple[str, ...]) -> str:
    """The text without the credentials."""
    for key in keys:
        said = said.replace(key, MASK)
    return said


@contextmanager
def sdk_errors(doing: str, keys: tuple[str, ...]) -> Generator[None]:
    """What the SDK raises in the block becomes Unavailable."""
    try:
        yield
    except OutfitterError:
        raise
    except Exception as error:  # noqa: BLE001 - the SDK raises everything, plain Exception included
        # The cause stays out: its text may quote what the program was given.
        told = quote(masked(str(error), keys)) if str(error) else type(error).__name__
        raise Unavailable(f"Copilot failed while {doing}: {told}", where=NAME) from None
