"""What tools an outside system offers, known by their description only: no handler, no policy, no transaction.

Document 2's option B. ``discovery`` fills bundles from MCP servers; who turns one into a provider's configuration is a
provider in ``bridge`` or in an adapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from outfitter.catalog import JsonValue


@dataclass(frozen=True, slots=True)
class ExternalToolSpec:
    """One outside tool as a model would see it."""

    name: str
    description: str
    input_schema: Mapping[str, JsonValue]
    output_schema: Mapping[str, JsonValue] | None = field(default=None, kw_only=True)
    server: str = field(default="", kw_only=True)
    tool: str = field(default="", kw_only=True)
    """Its own name at the server, where ``name`` carries a prefix."""
    title: str = field(default="", kw_only=True)
    annotations: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], kw_only=True)


@dataclass(frozen=True, slots=True)
class ExternalToolBundle:
    """The tools of one outside system; ``error`` says why it has none when it could not be asked."""

    name: str
    tool_specs: tuple[ExternalToolSpec, ...]
    error: str = field(default="", kw_only=True)


class ExternalToolProvider(Protocol):
    """Brings outside tools to one kind of model provider."""

    def get_bundles(self) -> tuple[ExternalToolBundle, ...]:
        """The bundles there are."""
        ...

    def to_provider_config(self, bundle: ExternalToolBundle) -> object:
        """The bundle as the provider wants it configured."""
        ...
