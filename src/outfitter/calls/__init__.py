"""WHAT IS ASKED, ANSWERED AND REMEMBERED: one tool call, what came of it, and the event it leaves. No I/O."""

from outfitter.calls.calls import Call
from outfitter.calls.events import CallSource, ToolInvoked
from outfitter.calls.finding import ToolFinder, ToolJson, description_of, title_of
from outfitter.calls.large import (
    READER,
    READER_TOOL,
    SCHEME,
    Large,
    cut,
    find_large,
    find_parts,
    preview,
    read_part,
)
from outfitter.calls.meta_tools import (
    CALL_TOOL,
    DESCRIBE_TOOL,
    META_NAMES,
    META_TOOLS,
    SEARCH_TOOLS,
    described_text,
    found_text,
)
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
    "CALL_TOOL",
    "DESCRIBE_TOOL",
    "META_NAMES",
    "META_TOOLS",
    "READER",
    "READER_TOOL",
    "SCHEME",
    "SEARCH_TOOLS",
    "Call",
    "CallSource",
    "Done",
    "Failed",
    "Large",
    "Outcome",
    "Refused",
    "TimedOut",
    "ToolFinder",
    "ToolInvoked",
    "ToolJson",
    "ToolResult",
    "Unavailable",
    "cut",
    "definition_text",
    "definition_tokens",
    "described_text",
    "description_of",
    "estimate_tokens",
    "find_large",
    "find_parts",
    "for_the_log",
    "found_text",
    "marks_secrets",
    "outcome_of_error",
    "preview",
    "read_part",
    "redact",
    "result_of",
    "tell_missing",
    "tell_outage",
    "tells_outage",
    "title_of",
    "total_tokens",
]
