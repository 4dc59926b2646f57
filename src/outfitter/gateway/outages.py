"""What a client is answered when the server behind its request fails: never a success, always with what to do instead.

The wording is ``calls.tell_outage``; programs find the same in ``_meta`` or in the error's ``data``. Which server would
have a tool that is in no list is guessed by its prefix, among the servers that cannot be asked now and no others.
"""

from __future__ import annotations

from typing import Any

from outfitter.calls import tell_outage
from outfitter.errors import NeedsAuth, OutfitterError, UpstreamDown, UpstreamLost
from outfitter.gateway.asked import told
from outfitter.gateway.faults import Rejected, rpc_error
from outfitter.gateway.views import Listing, View
from outfitter.gateway.visitors import Visitor
from outfitter.upstream import Message, loop_time


def outage_result(view: View, alias: str, error: OutfitterError) -> Message:
    """The result of a tool call that its server failed: an error that the model can read."""
    return told(_text(view, alias, error), code=error.code, **_details(view, alias, error))


def outage_error(view: View, alias: str, error: OutfitterError) -> Rejected:
    """The same for a request whose answer has no room for a text."""
    rpc_code = int(rpc_error(error)["code"])
    data = {"code": error.code, **_details(view, alias, error)}
    return Rejected(_text(view, alias, error), rpc_code=rpc_code, data=data)


def missing_server(view: View, visitor: Visitor, listing: Listing, name: str) -> tuple[str, OutfitterError] | None:
    """The server that may have a tool of this name and cannot be asked now, with the reason; None without one."""
    fitting = [alias for alias in listing.failures if view.server is not None or name.startswith(view.mark_of(alias))]
    if not fitting:
        return None
    alias = max(fitting, key=lambda one: len(view.mark_of(one)))
    return alias, _now(view, visitor, alias) or listing.failures[alias]


def _now(view: View, visitor: Visitor, alias: str) -> OutfitterError | None:
    """Why the server cannot be asked at this moment: a list that is kept knows an older reason."""
    try:
        connection = view.line(alias, visitor).connection
    except OutfitterError as error:
        return error
    return connection.health.refusal(loop_time(), connection.name)


def _text(view: View, alias: str, error: OutfitterError) -> str:
    return tell_outage(alias, error, fallback=view.fallback_of(alias))


def _details(view: View, alias: str, error: OutfitterError) -> dict[str, Any]:
    details: dict[str, Any] = {"server": alias}
    if isinstance(error, UpstreamDown) or (isinstance(error, UpstreamLost | NeedsAuth) and error.retry_after > 0):
        details["retryAfter"] = round(error.retry_after, 1)
    fallback = view.fallback_of(alias)
    return {**details, "fallback": fallback} if fallback else details
