"""WHAT IS ASKED, ANSWERED AND REMEMBERED: one tool call, what came of it, and the event it leaves. No I/O."""

from outfitter.calls.calls import Call
from outfitter.calls.events import CallSource, ToolInvoked
from outfitter.calls.outages import tell_missing, tell_outage, tells_outage
from outfitter.calls.outcomes import (
    Done,
    Failed,
    Outcome,
    Refused,
    TimedOut,
    Unavailable,
    for_the_log,
    outcome_of_error,
    result_of,
)
from outfitter.calls.redaction import marks_secrets, redact
from outfitter.calls.results import ToolResult
from outfitter.calls.tokens import definition_text, definition_tokens, estimate_tokens, total_tokens

__all__ = [
    "Call",
    "CallSource",
    "Done",
    "Failed",
    "Outcome",
    "Refused",
    "TimedOut",
    "ToolInvoked",
    "ToolResult",
    "Unavailable",
    "definition_text",
    "definition_tokens",
    "estimate_tokens",
    "for_the_log",
    "marks_secrets",
    "outcome_of_error",
    "redact",
    "result_of",
    "tell_missing",
    "tell_outage",
    "tells_outage",
    "total_tokens",
]
