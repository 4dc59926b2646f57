"""A conversation in the form of Chat Completions, as plain JSON: what OpenAI wrote and many providers speak.

Whoever sends it is given: ``send`` takes the body of a request and gives the body of the answer, or raises an
OutfitterError.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from outfitter.adapters.conversation import Offer, ToolAnswer, ToolUse, Turn
from outfitter.adapters.forms import Json, arguments_form, output_form
from outfitter.adapters.reading import count, items, read_arguments, text
from outfitter.adapters.response import StopReason, Usage
from outfitter.errors import Unavailable
from outfitter.tools import Tool

Send: TypeAlias = Callable[[Json], Awaitable[Mapping[str, Any]]]
_ENDINGS = {"length": StopReason.LENGTH, "content_filter": StopReason.REFUSED}


@dataclass(slots=True)
class ChatConversation:
    """One conversation; ``params`` are added to every request."""

    model: str
    send: Send
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    messages: list[Json] = field(default_factory=list[Json])
    _offered: tuple[Tool[Any, Any], ...] = ()
    _tools: list[Json] = field(default_factory=list[Json])

    def show(self, text: str) -> None:
        """Begin with this prompt, or have it in the place of the one it began with."""
        self.messages[:1] = [{"role": "user", "content": text}]

    def answer(self, answers: Sequence[ToolAnswer]) -> None:
        """Add what came of the calls."""
        self.messages += [
            {"role": "tool", "tool_call_id": answer.use.call_id, "content": answer.text} for answer in answers
        ]

    def tell(self, text: str) -> None:
        """Add a word from outside."""
        self.messages.append({"role": "user", "content": text})

    async def ask(self, offer: Offer) -> Turn:
        """The model's next turn."""
        request: Json = {**self.params, "model": self.model, "messages": self.messages}
        if offer.tools:
            request["tools"] = self._written(offer.tools)
        if offer.output is not None:
            form = {"name": "answer", "schema": output_form(offer.output)}
            request["response_format"] = {"type": "json_schema", "json_schema": form}
        return self._read(await self.send(request))

    def _written(self, tools: tuple[Tool[Any, Any], ...]) -> list[Json]:
        if tools != self._offered:
            self._offered, self._tools = tools, [_function(tool) for tool in tools]
        return self._tools

    def _read(self, answer: Mapping[str, Any]) -> Turn:
        choices = items(answer.get("choices"))
        if not choices:
            raise Unavailable("the model's answer holds no choice", where=f"model '{self.model}'")
        message: Json = choices[0].get("message") or {}
        called = [call for call in items(message.get("tool_calls")) if isinstance(call.get("function"), dict)]
        said, refusal = text(message.get("content")), text(message.get("refusal"))
        kept: Json = {"role": "assistant", "content": said or refusal}
        if called:
            kept |= {"content": said or None, "tool_calls": called}
        self.messages.append(kept)
        reason = text(choices[0].get("finish_reason"))
        ending = StopReason.REFUSED if refusal else _ENDINGS.get(reason, StopReason.DONE)
        detail = "" if ending is StopReason.DONE else refusal or f"the model stopped: {reason}"
        return Turn(said or refusal, tuple(map(_use, called)), _usage(answer), ending, detail)


def _function(tool: Tool[Any, Any]) -> Json:
    form = arguments_form(tool.input_schema)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": form},
    }


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
