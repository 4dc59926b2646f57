"""What an answer of a model provider that is no answer means: one table by HTTP status, for every SDK.

Each SDK's own errors are read beside its adapter. No text holds a credential.
"""

from __future__ import annotations

from collections.abc import Iterable

from outfitter.basics import MASK, quote
from outfitter.errors import Invalid, NeedsAuth, NotFound, OutfitterError, Unavailable, UpstreamLost, UpstreamTimeout

_CREDENTIALS = (401, 403)
_MISSING = 404
_BUSY = 429
_SERVER = 500


def too_slow(where: str) -> OutfitterError:
    """The provider did not answer in time."""
    return UpstreamTimeout("the model provider did not answer in time", where=where)


def not_reached(where: str) -> OutfitterError:
    """The provider is not there, or went away."""
    hint = "check the base URL and the network"
    return UpstreamLost("the model provider cannot be reached", may_have_run=True, where=where, hint=hint)


def refused(status: int, said: str, *, where: str, keys: Iterable[str] = ()) -> OutfitterError:
    """What the status means; ``said`` are the provider's own words, in which the keys are masked."""
    if status in _CREDENTIALS:
        # The provider's own words quote parts of the key.
        hint = "check the API key, and what it may do"
        return NeedsAuth(f"the model provider refuses the credentials (HTTP {status})", where=where, hint=hint)
    for key in filter(None, keys):
        said = said.replace(key, MASK)
    told = f"(HTTP {status}): {quote(said)}"
    if status == _MISSING:
        hint = "check the model's name and the base URL"
        return NotFound(f"the model provider does not know it {told}", where=where, hint=hint)
    if status == _BUSY:
        return Unavailable(f"the model provider takes no more requests now {told}", where=where, hint="try again later")
    if status < _SERVER:
        return Invalid(f"the model provider refuses the request {told}", where=where)
    return Unavailable(f"the model provider fails {told}", where=where)
