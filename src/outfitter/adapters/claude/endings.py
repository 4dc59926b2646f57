"""How an evaluation with Claude Code ended, as its last message tells it: one table, and the form of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from claude_agent_sdk import ResultMessage

from outfitter.adapters.claude.turns import Turns
from outfitter.adapters.response import StopReason
from outfitter.errors import InvalidArguments
from outfitter.prompt import StructuredOutput

_SUBTYPES = {
    "error_max_turns": StopReason.ROUNDS,
    "error_max_budget_usd": StopReason.BUDGET,
    "error_max_structured_output_retries": StopReason.INVALID_OUTPUT,
}


@dataclass(frozen=True, slots=True)
class Ending:
    """Why it ended, with what."""

    reason: StopReason
    detail: str = ""
    text: str | None = None
    """The answer; None when it is what the model said last."""
    output: Any = None


def read_ending(result: ResultMessage, turns: Turns, form: StructuredOutput[Any] | None) -> Ending | None:
    """The ending; None when it is an error."""
    said = "; ".join(result.errors or ()) or result.result or result.subtype
    if result.subtype in _SUBTYPES:
        return Ending(_SUBTYPES[result.subtype], said)
    if turns.fault == "max_output_tokens" or result.stop_reason == "max_tokens":
        return Ending(StopReason.LENGTH, "the model stopped: max_tokens")
    if result.stop_reason == "refusal":
        return Ending(StopReason.REFUSED, turns.text or said)
    if result.is_error:
        return None
    return Ending(StopReason.DONE, text=result.result) if form is None else _formed(result, form)


def _formed(result: ResultMessage, form: StructuredOutput[Any]) -> Ending:
    text = result.result or ""
    try:
        output = form.parse(text if result.structured_output is None else result.structured_output)
    except InvalidArguments as fault:
        return Ending(StopReason.INVALID_OUTPUT, fault.message, text)
    return Ending(StopReason.DONE, text=text, output=output)
