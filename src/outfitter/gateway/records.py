"""What is written down of every tool call, whichever lane it took: who asked what of whom, what was decided, what came.

A record is a line of JSON. Arguments and results are not in it unless the agent's rule says so; their digest and size
are. Where the line goes is ``recording``; what is counted from it is ``metrics``.
"""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple, TypeAlias

import msgspec

Result: TypeAlias = Literal["done", "tool_error", "failed", "denied", "unknown", "refused", "unavailable", "cancelled"]
Lane: TypeAlias = Literal["full", "fast"]
_PLAIN = (
    b'{"call_id":"%b","trace_id":"%b",%b,"started_at":%.6f,"duration":%.6f,%b,"bytes_in":%d,"bytes_out":%d,'
    b'"digest":"%b"}\n'
)
_DONE = b'"outcome":"done"'
_encoder = msgspec.json.Encoder(order="sorted")


class CallRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One tool call that has ended. Built once, after the outcome is known and before the answer goes out."""

    call_id: str
    agent: str
    token_id: str
    started_at: float
    """Seconds since 1970, UTC."""
    duration: float
    """Seconds from the request to the outcome."""
    outcome: Result
    lane: Lane = "full"
    shown: str = ""
    """The name that the client used."""
    server: str = ""
    """The agent's alias of the server; empty when no server has the tool."""
    tool: str = ""
    """The server's own name of the tool."""
    run_id: str | None = None
    decision: Literal["", "allow", "deny", "ask"] = ""
    """Empty when the call ended before it was judged."""
    rule: str = ""
    """Why it was refused, in the policy's words."""
    code: str = ""
    """The error code of an outcome that is not ``done``."""
    bytes_in: int = 0
    """How long the arguments are as JSON."""
    bytes_out: int = 0
    """How long the result or error is as JSON."""
    digest: str = ""
    """SHA-256 of the arguments; see ``digest_of``."""
    trace_id: str = ""
    span_id: str = ""
    parent_id: str = ""
    trace_flags: str = ""
    """The two hex digits of the caller's ``traceparent``; the last bit says whether its trace is sampled."""
    arguments: msgspec.Raw | None = None
    """Kept only where the agent's rule says so, redacted."""
    result: msgspec.Raw | None = None
    """Kept only where the agent's rule says so, redacted."""


class PlainLine(NamedTuple):
    """The line of a plain call, newline included, and what is counted of it."""

    line: bytes
    agent: str
    server: str
    outcome: Result
    duration: float


class PlainLines(msgspec.Struct, frozen=True):
    """The lines of all plain calls of one tool by one client, which differ in little: written without a record."""

    agent: str
    server: str
    _shared: bytes

    @classmethod
    def of(cls, agent: str, token_id: str, run_id: str | None, *, shown: str, server: str, tool: str) -> PlainLines:
        """Those of one client and one tool."""
        known = {
            "agent": agent, "token_id": token_id, "lane": "fast", "shown": shown, "server": server, "tool": tool,
            "decision": "allow",
        } | ({} if run_id is None else {"run_id": run_id})  # fmt: skip
        return cls(agent, server, _encoder.encode(known)[1:-1])

    def write(
        self, call_id: bytes, times: tuple[float, float], outcome: Result, sizes: tuple[int, int], digest: str
    ) -> PlainLine:
        """One line. The times are when it began and how long it took, the sizes those of arguments and answer."""
        said = _DONE if outcome == "done" else b'"outcome":"%b","code":"%b"' % ((outcome.encode(),) * 2)
        line = _PLAIN % (call_id, call_id, self._shared, *times, said, *sizes, digest.encode())
        return PlainLine(line, self.agent, self.server, outcome, times[1])


def canonical(arguments: object) -> bytes:
    """The arguments as JSON with sorted keys: those of equal calls are equal."""
    return _encoder.encode(arguments)


def measure(text: bytes) -> tuple[int, str]:
    """How long canonical arguments are, and their digest."""
    return len(text), hashlib.sha256(text).hexdigest()


def digest_of(arguments: object) -> str:
    """SHA-256 of the arguments as JSON with sorted keys, no spaces, UTF-8; bytes are taken as JSON text."""
    plain: object = msgspec.json.decode(arguments) if isinstance(arguments, bytes) else arguments
    return measure(canonical(plain))[1]
