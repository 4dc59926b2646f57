"""What is said otherwise about the tools of one server, over all levels: later levels win, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from outfitter.basics import Origin, Overruled, Sourced
from outfitter.catalog import ToolOverride


def resolve_overrides(
    levels: Iterable[tuple[Origin, Mapping[str, ToolOverride]]],
) -> dict[str, Sourced[ToolOverride]]:
    """The override of each tool that any level speaks of, with who spoke last and who before."""
    found: dict[str, Sourced[ToolOverride]] = {}
    for origin, overrides in levels:
        for tool, override in overrides.items():
            before = found.get(tool)
            if before is None:
                found[tool] = Sourced(override, origin)
            else:
                overruled = (*before.overruled, Overruled(before.value, before.origin))
                found[tool] = Sourced(before.value.under(override), origin, overruled)
    return found
