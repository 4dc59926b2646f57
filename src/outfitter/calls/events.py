"""The event that every call leaves, whatever its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from outfitter.calls.outcomes import Outcome, result_of
from outfitter.calls.results import ToolResult
from outfitter.catalog import JsonValue

CallSource: TypeAlias = Literal["native", "mcp"]


@dataclass(frozen=True, slots=True)
class ToolInvoked:
    """A call has ended. ``params`` are the arguments with secrets masked; ``decision`` is what the policies said."""

    name: str
    adapter: str
    params: Mapping[str, JsonValue]
    outcome: Outcome = field(repr=False)
    source: CallSource
    created_at: datetime
    duration: float
    """Seconds from the request to the outcome."""
    call_id: str
    mcp_server: str | None = None
    session_id: str | None = None
    decision: str = "allow"

    @property
    def tool_name(self) -> str:
        """The same as ``name``."""
        return self.name

    @property
    def result(self) -> ToolResult[Any]:
        """What the caller got."""
        return result_of(self.outcome)
