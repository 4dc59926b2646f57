"""A conversation in the form of OpenAI's Responses API, as plain JSON.

The whole conversation goes with every request: nothing is asked for by an id that only the provider's storage knows.
What the model put out is sent back as it was, so that reasoning is not lost between turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outfitter.adapters.chat import Send
from outfitter.adapters.conversation import Offer, ToolAnswer, ToolUse, Turn
from outfitter.adapters.forms import Json, arguments_form, output_form
from outfitter.adapters.reading import count, items, read_arguments, text
from outfitter.adapters.response import StopReason, Usage
from outfitter.errors import Unavailable
from outfitter.tools import Tool

_FILTERED = "content_filter"


@dataclass(slots=True)
class ResponsesConversation:
    """One conversation; ``params`` are added to every request."""

    model: str
    send: Send
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    items: list[Json] = field(default_factory=list[Json])
    _offered: tuple[Tool[Any, Any], ...] = ()
    _tools: list[Json] = field(default_factory=list[Json])

    def show(self, text: str) -> None:
        """Begin with this prompt, or have it in the place of the one it began with."""
        self.items[:1] = [{"role": "user", "content": text}]

    def answer(self, answers: Sequence[ToolAnswer]) -> None:
        """Add what came of the calls."""
        self.items += [
            {"type": "function_call_output", "call_id": answer.use.call_id, "output": answer.text} for answer in answers
        ]

    def tell(self, text: str) -> None:
        """Add a word from outside."""
        self.items.append({"role": "user", "content": text})

    async def ask(self, offer: Offer) -> Turn:
        """The model's next turn."""
        request: Json = {**self.params, "model": self.model, "input": self.items}
        if offer.tools:
            request["tools"] = self._written(offer.tools)
        if offer.output is not None:
            form = {"type": "json_schema", "name": "answer", "schema": output_form(offer.output), "strict": False}
            request["text"] = {**self.params.get("text", {}), "format": form}
        return self._read(await self.send(request))

    def _written(self, tools: tuple[Tool[Any, Any], ...]) -> list[Json]:
        if tools != self._offered:
            self._offered, self._tools = tools, [_function(tool) for tool in tools]
        return self._tools

    def _read(self, answer: Mapping[str, Any]) -> Turn:
        where = f"model '{self.model}'"
        if answer.get("status") == "failed":
            error: Json = answer.get("error") or {}
            raise Unavailable(f"the provider failed: {text(error.get('message')) or 'no reason given'}", where=where)
        if not isinstance(answer.get("output"), list):
            raise Unavailable("the model's answer holds no output", where=where)
        output = items(answer.get("output"))
        self.items += output
        parts = [part for item in output if item.get("type") == "message" for part in items(item.get("content"))]
        said = "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text")
        refusal = "".join(text(part.get("refusal")) for part in parts if part.get("type") == "refusal")
        called = [item for item in output if item.get("type") == "function_call"]
        ending, detail = _ending(answer, refusal)
        return Turn(said or refusal, tuple(map(_use, called)), _usage(answer), ending, detail)


def _ending(answer: Mapping[str, Any], refusal: str) -> tuple[StopReason, str]:
    if refusal:
        return StopReason.REFUSED, refusal
    if answer.get("status") != "incomplete":
        return StopReason.DONE, ""
    details: Json = answer.get("incomplete_details") or {}
    reason = text(details.get("reason"))
    ending = StopReason.REFUSED if reason == _FILTERED else StopReason.LENGTH
    return ending, f"the model stopped: {reason or 'incomplete'}"


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


def _use(item: Json) -> ToolUse:
    return ToolUse(text(item.get("call_id")), text(item.get("name")), read_arguments(item.get("arguments")))


def _usage(answer: Mapping[str, Any]) -> Usage:
    used = answer.get("usage")
    return Usage(
        count(used, "input_tokens"), count(used, "output_tokens"), count(used, "input_tokens_details", "cached_tokens")
    )
