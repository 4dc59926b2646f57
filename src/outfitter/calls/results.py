"""What a tool gives back: a text for the model, a value for the program, and whether it worked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from outfitter.catalog import JsonValue

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class ToolResult(Generic[T]):
    """The answer of one call; ``code`` names the kind of a failure, ``raw`` is a foreign server's answer untouched."""

    message: str
    value: T | None = None
    success: bool = True
    code: str = ""
    raw: Mapping[str, JsonValue] | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def ok(value: V, message: str = "") -> ToolResult[V]:
        """A success."""
        return ToolResult(message, value)

    @staticmethod
    def error(message: str, *, code: str = "tool_error") -> ToolResult[Any]:
        """A failure that the tool itself tells."""
        return ToolResult(message, None, success=False, code=code)
