"""What an agent or capability says otherwise about a tool of a server, without another server.

The words only. Laying one over a definition, and filling arguments in, is done where tools are listed and called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from outfitter.catalog.headers import JsonValue


@dataclass(frozen=True, slots=True)
class ToolOverride:
    """Another title or description, arguments with a default, and arguments that a model neither sees nor gives."""

    title: str | None = None
    description: str | None = None
    defaults: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    hidden: tuple[str, ...] = ()

    def under(self, later: ToolOverride) -> ToolOverride:
        """This one with what a later level says in its place; what is hidden stays hidden."""
        return replace(
            self,
            title=self.title if later.title is None else later.title,
            description=self.description if later.description is None else later.description,
            defaults={**self.defaults, **later.defaults},
            hidden=tuple(dict.fromkeys((*self.hidden, *later.hidden))),
        )
