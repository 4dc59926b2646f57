"""What telemetry sees of a call. Arguments, results and tokens are not in it, so that no span can hold them."""

from __future__ import annotations

from typing import Protocol


class EndedCall(Protocol):
    """One tool call that has ended, as the gateway's record tells it."""

    @property
    def call_id(self) -> str:
        """An id that no other call has."""
        ...

    @property
    def agent(self) -> str:
        """Who asked."""
        ...

    @property
    def server(self) -> str:
        """The agent's alias of the server; empty when no server has the tool."""
        ...

    @property
    def tool(self) -> str:
        """The server's own name of the tool; empty when there is none."""
        ...

    @property
    def run_id(self) -> str | None:
        """The run it belongs to."""
        ...

    @property
    def started_at(self) -> float:
        """Seconds since 1970, UTC."""
        ...

    @property
    def duration(self) -> float:
        """Seconds from the request to the outcome."""
        ...

    @property
    def outcome(self) -> str:
        """``done``, or what else came of it."""
        ...

    @property
    def code(self) -> str:
        """The error code of an outcome that is not ``done``."""
        ...

    @property
    def decision(self) -> str:
        """What the rules said; empty when the call ended before it was judged."""
        ...

    @property
    def rule(self) -> str:
        """Why it was refused, in the policy's words."""
        ...

    @property
    def lane(self) -> str:
        """Which way it took through the gateway."""
        ...

    @property
    def trace_id(self) -> str:
        """The caller's trace, else the call's own id."""
        ...

    @property
    def span_id(self) -> str:
        """What the server was told as its parent; empty when the caller gave no trace."""
        ...

    @property
    def parent_id(self) -> str:
        """The caller's span; empty when the caller gave no trace."""
        ...

    @property
    def trace_flags(self) -> str:
        """The flags of the caller's ``traceparent``; empty when the caller gave no trace."""
        ...
