"""What an error of LiteLLM means here. No text of it holds a credential.

LiteLLM gives a provider that cannot be reached, and a key that is missing, the status 500; what happened stands in the
errors behind its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import openai

from outfitter.adapters.faults import not_reached, refused, too_slow
from outfitter.errors import Invalid, NeedsAuth, OutfitterError

_WORDS_OF_LITELLM = re.compile(r"^(?:litellm\.\w+: )?(?:\w+Error: )?(?:\w+Exception - )?")
_KEY_NAMES = ("_KEY", "_TOKEN", "_SECRET")
_SHORTEST_KEY = 8
_UNSUPPORTED = "UnsupportedParamsError"


def understood(error: Exception, *, where: str, key: str | None) -> OutfitterError:
    """The error as Outfitter tells it; keys are masked where the provider quotes them."""
    causes = list(_causes(error))
    if any(isinstance(cause, openai.APITimeoutError | TimeoutError) for cause in causes):
        return too_slow(where)
    if any(isinstance(cause, openai.APIConnectionError | OSError) for cause in causes):
        return not_reached(where)
    if any(type(cause) is openai.OpenAIError for cause in causes):
        # The SDK says this before it sends anything.
        hint = "set the provider's environment variable, or give LiteLLMClientConfig(api_key=…)"
        return NeedsAuth("there is no API key for the model provider", where=where, hint=hint)
    said = _WORDS_OF_LITELLM.sub("", str(error), count=1)
    status = getattr(error, "status_code", None)
    told = refused(status if isinstance(status, int) else 500, said, where=where, keys=_keys(key))
    if type(error).__name__ == _UNSUPPORTED:
        return Invalid(told.message, where=where, hint="params={'drop_params': True} leaves out what it cannot take")
    return told


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _keys(key: str | None) -> list[str]:
    """Everything that may be a key: the one that was given, and those LiteLLM may have taken from the environment."""
    known = [value for name, value in os.environ.items() if name.endswith(_KEY_NAMES) and len(value) >= _SHORTEST_KEY]
    return sorted([*known, key or ""], key=len, reverse=True)
