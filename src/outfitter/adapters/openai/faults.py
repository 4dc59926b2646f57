"""What an error of OpenAI's SDK means here. No text of it holds a credential."""

from __future__ import annotations

import openai

from outfitter.adapters.faults import not_reached, refused, too_slow
from outfitter.errors import OutfitterError, Unavailable


def understood(error: openai.OpenAIError, *, where: str, key: str) -> OutfitterError:
    """The error as Outfitter tells it; the key is masked where the provider quotes it."""
    if isinstance(error, openai.APITimeoutError):
        return too_slow(where)
    if isinstance(error, openai.APIConnectionError):
        return not_reached(where)
    if isinstance(error, openai.APIStatusError):
        return refused(error.status_code, _message(error), where=where, keys=[key])
    return Unavailable(f"the model provider's answer cannot be used ({type(error).__name__})", where=where)


def _message(error: openai.APIStatusError) -> str:
    """The provider's own words, without the SDK's."""
    body: object = error.body
    said: object = body.get("message") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return said if isinstance(said, str) else error.message
