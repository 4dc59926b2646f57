"""What every transport offers to a link: ask a request, tell a notification, and say when the connection is gone.

A wire carries plain JSON objects and knows nothing of what they mean. It is opened and closed by one task
(``async with open_…_wire(…) as wire``) and may be used by any task in between. Protocol eras, sessions of the
handshake era, time limits and retries are the link's affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from outfitter.errors import OutfitterError, UpstreamLost

Message: TypeAlias = "dict[str, Any]"
"""A JSON-RPC message as it is on the wire."""

NO_HEADERS: Mapping[str, str] = {}
STREAM_CLOSED = "outfitter/stream_closed"
"""What a wire over HTTP notices to whoever stands by a request when the server closes its stream before the answer."""


class SessionLost(UpstreamLost):
    """A server of the handshake era no longer knows our session: the request was not executed, a new one is needed."""


class Inbox(Protocol):
    """Where a wire delivers what the server says by itself."""

    def notice(self, message: Message, during: object = None) -> None:
        """Take a notification. Must not block and must not raise. ``during`` is the id of our request it belongs to."""
        ...

    async def answer(self, message: Message, during: object = None) -> Message:
        """Answer a request of the server with the whole response message. Must not raise."""
        ...


class Wire(Protocol):
    """One open connection."""

    async def ask(self, message: Message, headers: Mapping[str, str] = NO_HEADERS) -> Message:
        """Send a request and wait for the response message with its id, be it a result or an error.

        Cancelling the asking task gives up waiting and frees everything it held; it does not by itself tell the
        server, except on a wire where closing the response stream does. Raises UpstreamLost when the connection goes
        before the answer came (``may_have_run`` false only if the request certainly did not reach the server),
        ProtocolViolation, NeedsAuth, DestinationForbidden. Time limits are the caller's.
        """
        ...

    async def tell(self, message: Message, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Send a notification; nothing comes back."""
        ...

    @property
    def lost(self) -> OutfitterError | None:
        """Why the connection is gone for good; None while it can be used."""
        ...

    async def wait_lost(self) -> OutfitterError:
        """Wait until the connection is gone for good, and say why; forever on a wire with no lasting connection."""
        ...


@runtime_checkable
class Sessioned(Protocol):
    """What a wire over HTTP can do besides, for servers of the handshake era."""

    session_id: str | None

    async def listen(self, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Begin to hear what the server says by itself; nothing when it offers no such stream."""
        ...

    async def end_session(self, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Tell the server that the session is over; bounded, and never raises."""
        ...
