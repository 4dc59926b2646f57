"""One tool call as it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from outfitter.catalog import JsonValue


@dataclass(frozen=True, slots=True)
class Call:
    """Which tool, with which arguments, for whom; ``server`` is None for a tool of our own process."""

    name: str
    """The name the model used."""
    tool: str
    """The tool's own name: the server's, where ``name`` may carry a prefix."""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], repr=False)
    server: str | None = None
    call_id: str = ""
    session_id: str | None = None
    read_only: bool = False
    """Whether it only reads, by the word of a server that is trusted."""

    @property
    def names(self) -> frozenset[str]:
        """Every name a policy may know the tool by."""
        return frozenset({self.name, self.tool})
