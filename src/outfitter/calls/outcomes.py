"""What came of a call. Every call ends in exactly one of these, and each becomes one ToolResult.

What a model should hear is an outcome, not an exception: ``outcome_of_error`` is the one table from errors to outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from outfitter.calls.outages import tell_outage
from outfitter.calls.results import ToolResult
from outfitter.errors import (
    Forbidden,
    McpConnectionError,
    McpTimeoutError,
    NeedsAuth,
    OutfitterError,
    ProtocolViolation,
    SpawnFailed,
    UpstreamDown,
    UpstreamLost,
    UpstreamTimeout,
)


@dataclass(frozen=True, slots=True)
class Done:
    """The tool ran and says that it worked."""

    result: ToolResult[Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool ran, or began to, and did not work."""

    result: ToolResult[Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The tool was not run: unfit arguments, a policy, an unknown name, a spent budget."""

    reason: str
    code: str = "denied"


@dataclass(frozen=True, slots=True)
class TimedOut:
    """No answer within the time limit; the tool may have run."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The server behind the tool cannot be reached; ``retry_after`` says when it makes sense to ask again."""

    reason: str
    code: str = "unavailable"
    retry_after: float | None = None


Outcome: TypeAlias = Done | Failed | Refused | TimedOut | Unavailable


def result_of(outcome: Outcome) -> ToolResult[Any]:
    """What the caller of a tool gets for this outcome."""
    if isinstance(outcome, Done | Failed):
        return outcome.result
    code = "timeout" if isinstance(outcome, TimedOut) else outcome.code
    return ToolResult(outcome.reason, None, success=False, code=code)


def for_the_log(outcome: Outcome) -> Outcome:
    """The outcome without a foreign server's whole answer: what is remembered must stay small."""
    if isinstance(outcome, Done | Failed) and outcome.result.raw is not None:
        return replace(outcome, result=replace(outcome.result, raw=None))
    return outcome


_OUTAGES = (
    UpstreamTimeout, McpTimeoutError, TimeoutError, UpstreamDown, UpstreamLost, NeedsAuth, SpawnFailed,
    McpConnectionError, ProtocolViolation,
)  # fmt: skip


def outcome_of_error(error: Exception, *, server: str | None = None, fallback: str = "") -> Outcome:
    """The outcome of a handler that raised; the text of a foreign exception stays, its type says the rest.

    With the name of the server behind the tool, an outage of it is told with what to do instead.
    """
    is_outage = server is not None and isinstance(error, _OUTAGES)
    told = tell_outage(server, error, fallback=fallback) if server is not None and is_outage else str(error)
    if isinstance(error, UpstreamTimeout | McpTimeoutError | TimeoutError):
        return TimedOut(told or "the tool did not answer in time")
    if isinstance(error, UpstreamDown | UpstreamLost | NeedsAuth | SpawnFailed | McpConnectionError):
        return Unavailable(told, error.code, _retry_after(error))
    if isinstance(error, Forbidden):
        return Refused(told, error.code)
    if isinstance(error, OutfitterError):
        return Failed(ToolResult(told, None, success=False, code=error.code))
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Failed(ToolResult(told, None, success=False, code="tool_error"))


def _retry_after(error: OutfitterError) -> float | None:
    if isinstance(error, UpstreamDown):
        return error.retry_after
    return (error.retry_after or None) if isinstance(error, UpstreamLost | NeedsAuth) else None
