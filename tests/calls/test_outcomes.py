"""Every call ends in one outcome, and every outcome is one result."""

from __future__ import annotations

import pytest

from outfitter.calls import (
    Call,
    Done,
    Failed,
    Outcome,
    Refused,
    TimedOut,
    ToolResult,
    Unavailable,
    outcome_of_error,
    result_of,
)
from outfitter.errors import (
    CallDenied,
    InvalidArguments,
    McpConnectionError,
    McpTimeoutError,
    NeedsAuth,
    SpawnFailed,
    UpstreamDown,
    UpstreamLost,
    UpstreamTimeout,
)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Refused("no"), "denied"),
        (TimedOut("late"), "timeout"),
        (Unavailable("gone", "upstream_down", 3.0), "upstream_down"),
        (Failed(ToolResult.error("broken")), "tool_error"),
    ],
)
def test_every_outcome_but_done_is_a_result_without_success(outcome: Outcome, code: str) -> None:
    result = result_of(outcome)
    assert (result.success, result.value, result.code) == (False, None, code)
    assert result.message


def test_done_is_the_tools_own_result() -> None:
    result = ToolResult.ok(3, "three")
    assert result_of(Done(result)) is result
    assert (result.message, result.value, result.success, result.code) == ("three", 3, True, "")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (TimeoutError(), TimedOut("the tool did not answer in time")),
        (UpstreamTimeout("late"), TimedOut("late")),
        (McpTimeoutError("late", server_name="s", timeout=1.0), TimedOut("server 's': late")),
        (UpstreamDown("down", retry_after=5.0), Unavailable("down", "upstream_down", 5.0)),
        (UpstreamLost("lost"), Unavailable("lost", "upstream_lost")),
        (NeedsAuth("who"), Unavailable("who", "needs_auth")),
        (SpawnFailed("no program"), Unavailable("no program", "spawn_failed")),
        (McpConnectionError("no", server_name="s"), Unavailable("server 's': no", "mcp_connection")),
        (CallDenied("no"), Refused("no", "call_denied")),
        (InvalidArguments("bad"), Failed(ToolResult("bad", None, success=False, code="invalid_arguments"))),
        (KeyError("x"), Failed(ToolResult("KeyError: 'x'", None, success=False, code="tool_error"))),
        (RuntimeError(), Failed(ToolResult("RuntimeError", None, success=False, code="tool_error"))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_has_its_outcome(error: Exception, outcome: Outcome) -> None:
    assert outcome_of_error(error) == outcome


def test_a_call_is_known_by_both_names_and_does_not_show_its_arguments() -> None:
    call = Call("git_diff", "diff", {"password": "hunter2"}, "git")
    assert call.names == {"git_diff", "diff"}
    assert "hunter2" not in repr(call)
