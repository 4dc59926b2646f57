"""What is a model told when the server behind a tool fails it? What failed, what to do instead, when it is tried again.

One wording for the gateway, the bridge and every adapter. Pure. Whether an error is told as an outage, and under which
code, is said where it is caught (``outcomes``, the gateway's last step).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from outfitter.errors import (
    McpTimeoutError,
    NeedsAuth,
    OutfitterError,
    UpstreamDown,
    UpstreamLost,
    UpstreamTimeout,
)

_DEFAULT = "do without its tools, or say what is missing."
_DOUBT = "The call may have been carried out all the same: check before you repeat it."
_OURS = re.compile(r"The MCP server '[^']*' (is not available|did not answer in time)")
_LATE = (UpstreamTimeout, McpTimeoutError, TimeoutError)


def tell_outage(server: str, error: Exception, *, fallback: str = "") -> str:
    """What the model is told about a call that its server failed; ``fallback`` is what the definition says to do."""
    parts = [_what(server, error), _doubt(error), f"Instead: {_sentence(fallback or _DEFAULT)}", _when(error)]
    return " ".join(part for part in parts if part)


def tells_outage(text: str) -> bool:
    """Whether a text tells of an outage in our words: whoever says so is there itself."""
    return _OURS.search(text) is not None


def tell_missing(servers: Iterable[str], fallbacks: Mapping[str, str]) -> str:
    """What the model is told at the beginning about servers whose tools it does not have; empty without any."""
    missing = tuple(servers)
    if not missing:
        return ""
    advice = [f"Instead of '{name}': {_sentence(fallbacks[name])}" for name in missing if fallbacks.get(name)]
    return " ".join((f"Not available now: {', '.join(missing)}.", *advice))


def _what(server: str, error: Exception) -> str:
    if isinstance(error, _LATE):
        said = _said(error)
        return _sentence(f"The MCP server '{server}' did not answer in time" + (f": {said}" if said else ""))
    said = "it wants other credentials" if isinstance(error, NeedsAuth) else _said(error)
    return _sentence(f"The MCP server '{server}' is not available: {said or type(error).__name__}")


def _said(error: Exception) -> str:
    if isinstance(error, UpstreamDown):
        return error.reason
    return error.message if isinstance(error, OutfitterError) else str(error)


def _doubt(error: Exception) -> str:
    if isinstance(error, UpstreamDown | NeedsAuth) or (isinstance(error, UpstreamLost) and not error.may_have_run):
        return "The call was not carried out."
    return _DOUBT if isinstance(error, (*_LATE, UpstreamLost)) else ""


def _when(error: Exception) -> str:
    left = error.retry_after if isinstance(error, UpstreamDown | UpstreamLost | NeedsAuth) else 0.0
    return f"It will be tried again in {math.ceil(left)} s." if left > 0 else "The next call tries it again."


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
