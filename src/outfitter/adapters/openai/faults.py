"""What an error of OpenAI's SDK means here: one table. No text of it holds a credential."""

from __future__ import annotations

import openai

from outfitter.basics import MASK, quote
from outfitter.errors import Invalid, NeedsAuth, NotFound, OutfitterError, Unavailable, UpstreamLost, UpstreamTimeout

_CREDENTIALS = (401, 403)
_MISSING = 404
_BUSY = 429
_SERVER = 500


def understood(error: openai.OpenAIError, *, where: str, key: str) -> OutfitterError:
    """The error as Outfitter tells it; the key is masked where the provider quotes it."""
    if isinstance(error, openai.APITimeoutError):
        return UpstreamTimeout("the model provider did not answer in time", where=where)
    if isinstance(error, openai.APIConnectionError):
        hint = "check the base URL and the network"
        return UpstreamLost("the model provider cannot be reached", may_have_run=True, where=where, hint=hint)
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, where, key)
    return Unavailable(f"the model provider's answer cannot be used ({type(error).__name__})", where=where)


def _of_status(error: openai.APIStatusError, where: str, key: str) -> OutfitterError:
    status = error.status_code
    if status in _CREDENTIALS:
        # The provider's own words quote parts of the key.
        hint = "check the API key, and what it may do"
        return NeedsAuth(f"the model provider refuses the credentials (HTTP {status})", where=where, hint=hint)
    said = _message(error)
    said = said.replace(key, MASK) if key else said
    told = f"(HTTP {status}): {quote(said)}"
    if status == _MISSING:
        hint = "check the model's name and the base URL"
        return NotFound(f"the model provider does not know it {told}", where=where, hint=hint)
    if status == _BUSY:
        return Unavailable(f"the model provider takes no more requests now {told}", where=where, hint="try again later")
    if status < _SERVER:
        return Invalid(f"the model provider refuses the request {told}", where=where)
    return Unavailable(f"the model provider fails {told}", where=where)


def _message(error: openai.APIStatusError) -> str:
    """The provider's own words, without the SDK's."""
    body: object = error.body
    said: object = body.get("message") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return said if isinstance(said, str) else error.message
