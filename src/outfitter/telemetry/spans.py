"""What the span of a call says: ids, name and attributes, after OpenTelemetry's conventions for MCP and tools.

Pure functions of the call. The ids are those that the server was told, so that its own spans hang below; where a call
has none they are made from its id, the same ones every time. Nothing here is a client's or a server's own text.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from outfitter.telemetry.ended import EndedCall

METHOD = "tools/call"
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_SPAN_ID = re.compile(r"(?!0{16})[0-9a-f]{16}")
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_RPC_CODE = re.compile(r"-?[0-9]{1,10}")
LONGEST = 256


@dataclass(frozen=True, slots=True)
class SpanIds:
    """Where a span stands in its trace."""

    trace_id: int
    span_id: int
    parent_id: int | None = None


def ids_of(call: EndedCall) -> SpanIds:
    """The ids that the record has, and made ones where it has none that are valid."""
    span_id = int(call.span_id, 16) if _SPAN_ID.fullmatch(call.span_id) else digest(call.call_id, 8)
    if not _TRACE_ID.fullmatch(call.trace_id):
        return SpanIds(digest(call.call_id, 16), span_id)
    has_parent = _SPAN_ID.fullmatch(call.parent_id) is not None
    return SpanIds(int(call.trace_id, 16), span_id, int(call.parent_id, 16) if has_parent else None)


def digest(text: str, size: int) -> int:
    """A number of so many bytes that is the same for the same text, and never 0."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size).digest(), "big") or 1


def name_of(call: EndedCall) -> str:
    """The name of the span. A tool that no server has is left out: its name is made up by the client."""
    return f"{METHOD} {call.tool}" if call.tool else METHOD


def attributes_of(call: EndedCall) -> dict[str, str]:
    """The attributes of the span; what is empty is left out."""
    error = error_of(call)
    found = {
        "mcp.method.name": METHOD,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "error.type": error,
        "rpc.response.status_code": error if _RPC_CODE.fullmatch(error) else "",
        "outfitter.call_id": call.call_id,
        "outfitter.agent": call.agent,
        "outfitter.server": call.server,
        "outfitter.run_id": call.run_id or "",
        "outfitter.decision": call.decision,
        "outfitter.rule": call.rule[:LONGEST],
        "outfitter.outcome": call.outcome,
        "outfitter.lane": call.lane,
    }
    return {name: value for name, value in found.items() if value}


def error_of(call: EndedCall) -> str:
    """What kind of error the call ended with; empty when it was done. A code that is no code is not passed on."""
    if call.outcome == "done":
        return ""
    return call.code if _CODE.fullmatch(call.code) else call.outcome
