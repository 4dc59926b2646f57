"""How OpenAI's Responses API writes a conversation.

The whole conversation goes with every request: nothing is asked for by an id that only the provider's storage knows.
What the model put out is sent back as it was, so that reasoning is not lost between turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outfitter.adapters.conversation import ToolAnswer, ToolUse, Turn
from outfitter.adapters.exchange import ApiForm
from outfitter.adapters.forms import Json, arguments_form, output_form
from outfitter.adapters.reading import count, items, read_arguments, text
from outfitter.adapters.response import StopReason, Usage
from outfitter.errors import Unavailable
from outfitter.prompt import StructuredOutput
from outfitter.tools import Tool

_FILTERED = "content_filter"


def _answer(answer: ToolAnswer) -> Json:
    return {"type": "function_call_output", "call_id": answer.use.call_id, "output": answer.text}


def _function(tool: Tool[Any, Any]) -> Json:
    # Without the word "strict" this API rewrites the form: every argument would be required.
    form = arguments_form(tool.input_schema)
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": form,
        "strict": False,
    }


def _output(request: Json, output: StructuredOutput[Any]) -> Json:
    form = {"type": "json_schema", "name": "answer", "schema": output_form(output), "strict": False}
    return {"text": {**request.get("text", {}), "format": form}}


def _read(answer: Mapping[str, Any], model: str) -> tuple[list[Json], Turn]:
    where = f"model '{model}'"
    if answer.get("status") == "failed":
        error: Json = answer.get("error") or {}
        raise Unavailable(f"the provider failed: {text(error.get('message')) or 'no reason given'}", where=where)
    if not isinstance(answer.get("output"), list):
        raise Unavailable("the model's answer holds no output", where=where)
    output = items(answer.get("output"))
    parts = [part for item in output if item.get("type") == "message" for part in items(item.get("content"))]
    said = "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text")
    refusal = "".join(text(part.get("refusal")) for part in parts if part.get("type") == "refusal")
    called = [item for item in output if item.get("type") == "function_call"]
    ending, detail = _ending(answer, refusal)
    return output, Turn(said or refusal, tuple(map(_use, called)), _usage(answer), ending, detail)


def _ending(answer: Mapping[str, Any], refusal: str) -> tuple[StopReason, str]:
    if refusal:
        return StopReason.REFUSED, refusal
    if answer.get("status") != "incomplete":
        return StopReason.DONE, ""
    details: Json = answer.get("incomplete_details") or {}
    reason = text(details.get("reason"))
    ending = StopReason.REFUSED if reason == _FILTERED else StopReason.LENGTH
    return ending, f"the model stopped: {reason or 'incomplete'}"


def _use(item: Json) -> ToolUse:
    return ToolUse(text(item.get("call_id")), text(item.get("name")), read_arguments(item.get("arguments")))


def _usage(answer: Mapping[str, Any]) -> Usage:
    used = answer.get("usage")
    return Usage(
        count(used, "input_tokens"), count(used, "output_tokens"), count(used, "input_tokens_details", "cached_tokens")
    )


RESPONSES = ApiForm("input", _answer, _function, _output, _read)
"""The form of the Responses API."""
