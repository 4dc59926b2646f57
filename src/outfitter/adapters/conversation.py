"""What the loop needs of a model: a conversation that takes turns. Each API keeps it in its own form.

The loop (``loop``) knows nothing of an API, a conversation nothing of tools being run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from outfitter.adapters.response import StopReason, Usage
from outfitter.calls import ToolResult
from outfitter.prompt import StructuredOutput
from outfitter.tools import Tool


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call that the model asks for; arguments that are no JSON object stay the text they are."""

    call_id: str
    name: str
    arguments: Mapping[str, Any] | str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What the model is told about one call."""

    use: ToolUse
    result: ToolResult[Any]
    note: str = ""
    """What the model should know besides the result."""

    @property
    def text(self) -> str:
        """The answer for an API that has no mark for failures."""
        result = self.result
        told = result.message if result.success else f"Error ({result.code or 'tool_error'}): {result.message}"
        return f"{told}\n\n{self.note}" if self.note else told


@dataclass(frozen=True, slots=True)
class Offer:
    """What the model may use in its next turn, and the form its answer should have."""

    tools: tuple[Tool[Any, Any], ...] = ()
    output: StructuredOutput[Any] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model said. Without tool uses it is its last word, and ``ending`` says how it came about."""

    text: str
    uses: tuple[ToolUse, ...] = ()
    usage: Usage = field(default_factory=Usage)
    ending: StopReason = StopReason.DONE
    detail: str = ""


class Conversation(Protocol):
    """One conversation with one model."""

    def show(self, text: str) -> None:
        """Begin with this prompt, or have it in the place of the one it began with."""
        ...

    def answer(self, answers: Sequence[ToolAnswer]) -> None:
        """Add what came of the calls of the last turn."""
        ...

    def tell(self, text: str) -> None:
        """Add a word from outside."""
        ...

    async def ask(self, offer: Offer) -> Turn:
        """The model's next turn, which the conversation keeps; an OutfitterError when the provider fails."""
        ...
