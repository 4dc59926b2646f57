"""Texts that replace those of a prompt without touching its code: bodies of sections, descriptions of tools.

An override may say for which text it was written (``expected_hash``); when that text has changed since, the override
is left out with a warning. Files of overrides are ``override_files``.
"""

from __future__ import annotations

import copy
import logging
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from outfitter.basics import suggest
from outfitter.catalog import JsonValue
from outfitter.errors import PromptValidationError
from outfitter.prompt.section import redefines
from outfitter.prompt.text import Text, read_text
from outfitter.prompt.tree import SectionNode, check_fields, hash_text
from outfitter.schemas import Fault, Shape
from outfitter.tools import Tool

_log = logging.getLogger(__name__)
_STALE = "prompt.override.stale"


@dataclass(frozen=True, slots=True)
class SectionOverride:
    """Another body for a section, with ``$field`` as in the first one."""

    body: str
    expected_hash: str | None = None


@dataclass(frozen=True, slots=True)
class ToolOverride:
    """Other descriptions for a tool and its parameters."""

    description: str | None = None
    param_descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    expected_hash: str | None = None


@dataclass(frozen=True, slots=True)
class PromptOverrides:
    """What replaces what: sections by their path (keys joined by dots), tools by their name."""

    sections: Mapping[str, SectionOverride] = field(default_factory=dict[str, SectionOverride])
    tools: Mapping[str, ToolOverride] = field(default_factory=dict[str, ToolOverride])


NO_OVERRIDES = PromptOverrides()


def override_bodies(nodes: tuple[SectionNode, ...], overrides: PromptOverrides) -> dict[str, Text]:
    """The new texts by the name of their section; PromptValidationError when one may not or cannot be replaced."""
    if not overrides.sections:
        return {}
    known = {node.name: node for node in nodes}
    bodies: dict[str, Text] = {}
    for name, override in overrides.sections.items():
        if name not in known:
            raise PromptValidationError(f"no section '{name}' to override", hint=suggest(name, known))
        node = known[name]
        if not node.section.accepts_overrides or node.section.source_text is None:
            raise PromptValidationError(f"section '{name}' accepts no overrides")
        text = read_text(textwrap.dedent(override.body).strip())
        check_fields(text, node.params_type, f"{name} (overridden)")
        if not _is_stale(f"section '{name}'", override.expected_hash, node.hash):
            bodies[name] = text
    return bodies


def check_tool_names(nodes: tuple[SectionNode, ...], overrides: PromptOverrides) -> None:
    """Refuse overrides of tools that the template never has; where tools come from servers, nobody can know."""
    if any(redefines(node.section, "tools") for node in nodes):
        return
    known = {tool.name for node in nodes for tool in node.section.tools()}
    for name in overrides.tools:
        if name not in known:
            raise PromptValidationError(f"no tool '{name}' to override", hint=suggest(name, known))


def override_tools(tools: Iterable[Tool[Any, Any]], overrides: PromptOverrides) -> tuple[Tool[Any, Any], ...]:
    """The tools with their new descriptions."""
    if not overrides.tools:
        return tuple(tools)
    return tuple(
        _overridden(tool, overrides.tools[tool.name]) if tool.name in overrides.tools else tool for tool in tools
    )


def tool_hash(tool: Tool[Any, Any]) -> str:
    """What an override of a tool compares with: its description."""
    return hash_text(tool.description)


def _overridden(tool: Tool[Any, Any], override: ToolOverride) -> Tool[Any, Any]:
    if not tool.accepts_overrides:
        raise PromptValidationError(f"tool '{tool.name}' accepts no overrides")
    if _is_stale(f"tool '{tool.name}'", override.expected_hash, tool_hash(tool)):
        return tool
    shape = tool.params
    if override.param_descriptions:
        shape = _DescribedShape(shape, _described(shape.schema, override.param_descriptions, tool.name))
    return replace(tool, description=override.description or tool.description, arguments=shape)


def _is_stale(what: str, expected: str | None, found: str) -> bool:
    if expected is None or expected == found:
        return False
    context = {"what": what, "expected_hash": expected, "hash": found}
    _log.warning(
        "%s: the override of %s was written for another text and is left out", _STALE, what,
        extra={"event": _STALE, "context": context},
    )  # fmt: skip
    return True


def _described(schema: Mapping[str, JsonValue], descriptions: Mapping[str, str], tool: str) -> Mapping[str, JsonValue]:
    changed: dict[str, Any] = copy.deepcopy(dict(schema))
    for name, description in descriptions.items():
        properties = _properties(changed, name)
        if properties is None:
            raise PromptValidationError(f"tool '{tool}' has no parameter '{name}' to describe")
        properties[name] = {**properties[name], "description": description}
    return changed


def _properties(schema: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The properties among which the parameter is described: at the top, or in the definition the top points to."""
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    places: list[Any] = [schema, *(schema.get(key, {}).get(reference, {}) for key in ("$defs", "definitions"))]
    found: Iterator[Any] = (place.get("properties", {}) for place in places)
    return next((properties for properties in found if isinstance(properties.get(name), dict)), None)


@dataclass(frozen=True, slots=True)
class _DescribedShape:
    """A shape whose schema says the same in other words."""

    plain: Shape
    schema: Mapping[str, JsonValue]

    @property
    def type(self) -> Any:  # noqa: ANN401 - any Python type, as in Shape
        """The type of the shape."""
        return self.plain.type

    def faults(self, value: JsonValue) -> tuple[Fault, ...]:
        """What the shape finds."""
        return self.plain.faults(value)

    def load(self, value: JsonValue) -> Any:  # noqa: ANN401 - any Python value, as in Shape
        """What the shape loads."""
        return self.plain.load(value)

    def dump(self, value: object) -> JsonValue:
        """What the shape dumps."""
        return self.plain.dump(value)
