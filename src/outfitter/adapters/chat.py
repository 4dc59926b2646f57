"""How Chat Completions writes a conversation: what OpenAI wrote and many providers speak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from outfitter.adapters.conversation import ToolAnswer, ToolUse, Turn
from outfitter.adapters.exchange import ApiForm
from outfitter.adapters.forms import Json, arguments_form, output_form
from outfitter.adapters.reading import count, items, read_arguments, text
from outfitter.adapters.response import StopReason, Usage
from outfitter.errors import Unavailable
from outfitter.prompt import StructuredOutput
from outfitter.tools import Tool

_ENDINGS = {"length": StopReason.LENGTH, "content_filter": StopReason.REFUSED}


def _answer(answer: ToolAnswer) -> Json:
    return {"role": "tool", "tool_call_id": answer.use.call_id, "content": answer.text}


def _function(tool: Tool[Any, Any]) -> Json:
    form = arguments_form(tool.input_schema)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": form},
    }


def _output(request: Json, output: StructuredOutput[Any]) -> Json:  # noqa: ARG001 - the shape of every such function
    form = {"name": "answer", "schema": output_form(output)}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _read(answer: Mapping[str, Any], model: str) -> tuple[list[Json], Turn]:
    choices = items(answer.get("choices"))
    if not choices:
        raise Unavailable("the model's answer holds no choice", where=f"model '{model}'")
    message: Json = choices[0].get("message") or {}
    called = [call for call in items(message.get("tool_calls")) if isinstance(call.get("function"), dict)]
    said, refusal = text(message.get("content")), text(message.get("refusal"))
    kept: Json = {"role": "assistant", "content": said or refusal}
    if called:
        kept |= {"content": said or None, "tool_calls": called}
    reason = text(choices[0].get("finish_reason"))
    ending = StopReason.REFUSED if refusal else _ENDINGS.get(reason, StopReason.DONE)
    detail = "" if ending is StopReason.DONE else refusal or f"the model stopped: {reason}"
    return [kept], Turn(said or refusal, tuple(map(_use, called)), _usage(answer), ending, detail)


def _use(call: Json) -> ToolUse:
    function = cast("Json", call["function"])
    return ToolUse(text(call.get("id")), text(function.get("name")), read_arguments(function.get("arguments")))


def _usage(answer: Mapping[str, Any]) -> Usage:
    used = answer.get("usage")
    return Usage(
        count(used, "prompt_tokens"),
        count(used, "completion_tokens"),
        count(used, "prompt_tokens_details", "cached_tokens"),
    )


CHAT = ApiForm("messages", _answer, _function, _output, _read)
"""The form of Chat Completions."""
