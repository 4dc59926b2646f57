"""How does each API write a scripted turn? One function for one path; a further API is a further line of ``WIRES``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from outfitter.testing.model_turns import ModelCall, ModelCalls, ModelSays

Json: TypeAlias = dict[str, Any]
Answering: TypeAlias = ModelSays | ModelCalls
MakeId: TypeAlias = Callable[[str], str]
Writer: TypeAlias = Callable[[Answering, str, MakeId], Json]


def _arguments(call: ModelCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def _called(turn: Answering) -> tuple[ModelCall, ...]:
    return turn.calls if isinstance(turn, ModelCalls) else ()


def _chat(turn: Answering, model: str, make_id: MakeId) -> Json:
    message: Json = {"role": "assistant", "content": turn.text or None}
    finish = "stop"
    if isinstance(turn, ModelCalls):
        finish = "tool_calls"
        message["tool_calls"] = [
            {"id": make_id("call"), "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in turn.calls
        ]
    elif turn.is_refusal:
        message |= {"content": None, "refusal": turn.text}
    elif turn.is_cut:
        finish = "length"
    usage = turn.usage
    return {
        "id": make_id("chatcmpl"),
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    }


def _responses(turn: Answering, model: str, make_id: MakeId) -> Json:
    is_cut = isinstance(turn, ModelSays) and turn.is_cut
    usage = turn.usage
    return {
        "id": make_id("resp"),
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if is_cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": _items(turn, make_id),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    }


def _items(turn: Answering, make_id: MakeId) -> list[Json]:
    items: list[Json] = []
    if turn.text:
        is_refusal = isinstance(turn, ModelSays) and turn.is_refusal
        part = {"type": "refusal", "refusal": turn.text} if is_refusal else _text_part(turn.text)
        head = {"id": make_id("msg"), "type": "message", "role": "assistant", "status": "completed"}
        items.append({**head, "content": [part]})
    for call in _called(turn):
        head = {"id": make_id("fc"), "type": "function_call", "call_id": make_id("call"), "status": "completed"}
        items.append({**head, "name": call.name, "arguments": _arguments(call)})
    return items


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _messages(turn: Answering, model: str, make_id: MakeId) -> Json:
    blocks: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
    # Arguments that are no JSON can be written in a stream only; here they stay the text that they are.
    blocks += [
        {"type": "tool_use", "id": make_id("toolu"), "name": call.name, "input": call.arguments}
        for call in _called(turn)
    ]
    return {
        "id": make_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": _stop(turn),
        "stop_sequence": None,
        "usage": {"input_tokens": turn.usage.input_tokens, "output_tokens": turn.usage.output_tokens},
    }


def _stop(turn: Answering) -> str:
    if isinstance(turn, ModelCalls):
        return "tool_use"
    return "refusal" if turn.is_refusal else "max_tokens" if turn.is_cut else "end_turn"


WIRES: Mapping[str, Writer] = {"/chat/completions": _chat, "/responses": _responses, "/messages": _messages}
"""How the answer is written, by the end of the path that was asked."""
