"""What came of evaluating a prompt: the answer, what was done for it, what it cost, and why it ended.

An evaluation that was ended by a limit is a response too, with what was done until then; what went wrong outside is an
error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from outfitter.calls import ToolResult
from outfitter.errors import Invalid, Unavailable

T_co = TypeVar("T_co", covariant=True)


class StopReason(Enum):
    """Why an evaluation ended."""

    DONE = "done"
    """The model has answered."""
    LENGTH = "length"
    """The model's answer was cut at its own limit."""
    REFUSED = "refused"
    """The model, or its provider, will not answer this."""
    INVALID_OUTPUT = "invalid_output"
    """The answer does not have the form that was asked for, also after one repair."""
    BUDGET = "budget"
    DEADLINE = "deadline"
    ROUNDS = "rounds"
    """The model went on calling tools for more turns than it was given."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """How many of the input tokens the provider had seen before."""

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class MadeCall:
    """One tool call of the model, and its result; the session has the event of it."""

    call_id: str
    name: str
    arguments: Mapping[str, Any] | str = field(repr=False)
    """As the model wrote them; a text when they were not a JSON object."""
    result: ToolResult[Any]


@dataclass(frozen=True, slots=True)
class PromptResponse(Generic[T_co]):
    """The answer to a prompt. ``output`` is there when the prompt asks for a form and ``stop_reason`` is DONE."""

    text: str
    output: T_co | None = None
    tool_calls: tuple[MadeCall, ...] = ()
    """In the order in which the model asked for them."""
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0
    """How many turns the model took."""
    stop_reason: StopReason = StopReason.DONE
    detail: str = ""
    """More about the reason, where it is not DONE."""

    @property
    def is_complete(self) -> bool:
        """Whether the model has answered, in the form that was asked for."""
        return self.stop_reason is StopReason.DONE

    def require(self) -> T_co:
        """The output; Unavailable says why there is none."""
        if not self.is_complete:
            raise Unavailable(f"the prompt was not answered ({self.stop_reason.value}): {self.detail}")
        if self.output is None:
            raise Invalid("the prompt asks for no structured output", hint="read 'text', or write PromptTemplate[Form]")
        return self.output
