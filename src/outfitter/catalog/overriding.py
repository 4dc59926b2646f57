"""What does a tool look like with an override laid over it, and what is sent to its server? Pure.

The words are in ``overrides``; who lists and calls tools (``gateway``, ``bridge``) lays it over them here, so
that both do the same. A schema is changed at its top level only: arguments are what stands there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from outfitter.catalog.overrides import ToolOverride


def apply_override(entry: Mapping[str, Any], override: ToolOverride) -> dict[str, Any]:
    """The definition as its user sees it: hidden arguments are gone, defaults are said and no longer required."""
    changed: dict[str, Any] = dict(entry)
    if override.title is not None:
        changed["title"] = override.title
    if override.description is not None:
        changed["description"] = override.description
    if rewrites(override):
        changed["inputSchema"] = _narrowed(_fields(entry.get("inputSchema")), override)
    return changed


def rewrites(override: ToolOverride | None) -> bool:
    """Whether the arguments of a call must be completed: it says more than another title or description."""
    return override is not None and bool(override.defaults or override.hidden)


def complete_arguments(arguments: Mapping[str, Any], override: ToolOverride) -> dict[str, Any]:
    """The arguments as they are sent: what was given, and the defaults for what was not."""
    return {**override.defaults, **arguments}


def hidden_given(arguments: Mapping[str, Any], override: ToolOverride) -> tuple[str, ...]:
    """The arguments that were given although there is no such argument for this user."""
    return tuple(name for name in override.hidden if name in arguments)


def _narrowed(schema: Mapping[str, Any], override: ToolOverride) -> dict[str, Any]:
    hidden, defaults = frozenset(override.hidden), override.defaults
    narrowed: dict[str, Any] = dict(schema)
    properties = {name: one for name, one in _fields(schema.get("properties")).items() if name not in hidden}
    for name in defaults.keys() & properties.keys():
        properties[name] = {**_fields(properties[name]), "default": defaults[name]}
    if "properties" in schema:
        narrowed["properties"] = properties
    required = schema.get("required")
    if isinstance(required, list):
        names = cast("list[object]", required)
        narrowed["required"] = [name for name in names if name not in hidden and name not in defaults]
    return narrowed


def _fields(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
