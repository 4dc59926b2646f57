"""What a model is told of an outage: what failed, what to do instead, when it is tried again; one wording for all."""

from __future__ import annotations

import pytest

from outfitter.calls import TimedOut, Unavailable, outcome_of_error, result_of, tell_missing, tell_outage, tells_outage
from outfitter.errors import (
    McpConnectionError,
    NeedsAuth,
    ProtocolViolation,
    SpawnFailed,
    UpstreamDown,
    UpstreamLost,
    UpstreamTimeout,
)

FALLBACK = "use the `gh` CLI"


@pytest.mark.promise("DEGRADE-TOLD")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            UpstreamDown("not available: refused; it is tried again in 42 s", retry_after=41.2, reason="refused"),
            (
                "The MCP server 'gh' is not available: refused. The call was not carried out. "
                "Instead: use the `gh` CLI. It will be tried again in 42 s."
            ),
        ),
        (
            UpstreamTimeout("no answer within 3 s"),
            (
                "The MCP server 'gh' did not answer in time: no answer within 3 s. The call may have been carried "
                "out all the same: check before you repeat it. Instead: use the `gh` CLI. The next call tries it again."
            ),
        ),
        (
            UpstreamLost("it ended by SIGKILL", may_have_run=True),
            (
                "The MCP server 'gh' is not available: it ended by SIGKILL. The call may have been carried out all the "
                "same: check before you repeat it. Instead: use the `gh` CLI. The next call tries it again."
            ),
        ),
        (
            NeedsAuth("401: give me metadata"),
            (
                "The MCP server 'gh' is not available: it wants other credentials. The call was not carried out. "
                "Instead: use the `gh` CLI. The next call tries it again."
            ),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_outage_is_told_with_the_fallback_and_the_time(error: Exception, said: str) -> None:
    assert tell_outage("gh", error, fallback=FALLBACK) == said
    assert tells_outage(f"Error: {said}")


def test_without_a_fallback_the_model_is_told_to_do_without() -> None:
    told = tell_outage("gh", UpstreamDown("refused", retry_after=0.2))
    assert "Instead: do without its tools, or say what is missing." in told
    assert told.endswith("It will be tried again in 1 s.")


@pytest.mark.promise("DEGRADE-HONEST")
@pytest.mark.parametrize(
    "error",
    [
        UpstreamDown("refused", retry_after=5.0),
        UpstreamLost("gone", may_have_run=True),
        UpstreamTimeout("late"),
        NeedsAuth("401"),
        SpawnFailed("no program"),
        ProtocolViolation("garbage"),
        McpConnectionError("refused", server_name="gh"),
        TimeoutError("late"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fallback_never_looks_like_success(error: Exception) -> None:
    outcome = outcome_of_error(error, server="gh", fallback=FALLBACK)
    result = result_of(outcome)
    assert not result.success
    assert result.code
    assert result.value is None
    assert FALLBACK in result.message
    assert isinstance(outcome, Unavailable | TimedOut) or result.code == "protocol_violation"


def test_tools_of_our_own_process_have_no_fallback() -> None:
    assert outcome_of_error(TimeoutError("late")) == TimedOut("late")
    assert outcome_of_error(KeyError("x"), server="gh", fallback=FALLBACK) == outcome_of_error(KeyError("x"))


def test_missing_servers_are_named_with_what_to_do_instead() -> None:
    assert tell_missing([], {}) == ""
    told = tell_missing(["gh", "db"], {"gh": FALLBACK})
    assert told == "Not available now: gh, db. Instead of 'gh': use the `gh` CLI."
