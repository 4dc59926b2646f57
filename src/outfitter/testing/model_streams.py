"""How does each API stream an answer? The answer of ``model_wires`` taken apart into its events, by the same paths.

A text comes in one piece: who puts pieces together is tried with the real provider's own rhythm anyway.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from outfitter.testing.model_wires import Json

Event: TypeAlias = tuple[str, Json]
"""The event's name, empty where the API names none, and its data."""
Streamer: TypeAlias = Callable[[Json], Iterator[Event]]
_END = b"data: [DONE]\n\n"


def write_stream(path: str, answer: Json) -> bytes:
    """The whole stream of an answer, as it goes over the wire."""
    events = b"".join(_frame(name, data) for name, data in STREAMS[path](answer))
    return events + _END if path == "/chat/completions" else events


def _frame(name: str, data: Json) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


# ── Anthropic's Messages ──


def _messages(answer: Json) -> Iterator[Event]:
    usage: Json = answer["usage"]
    begun: Json = {**answer, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _named("message_start", message=begun)
    for index, block in enumerate(answer["content"]):
        start, delta = _block(block)
        yield _named("content_block_start", index=index, content_block=start)
        yield _named("content_block_delta", index=index, delta=delta)
        yield _named("content_block_stop", index=index)
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield _named("message_delta", delta=ended, usage=usage)
    yield _named("message_stop")


def _block(block: Json) -> tuple[Json, Json]:
    if block["type"] == "text":
        return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    written = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
    return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": written}


def _named(kind: str, **data: object) -> Event:
    return kind, {"type": kind, **data}


# ── Chat Completions ──


def _chat(answer: Json) -> Iterator[Event]:
    head = {**answer, "object": "chat.completion.chunk"}
    (choice,) = answer["choices"]
    message: Json = choice["message"]
    calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls", ()))]
    parts: list[Json] = [{"role": "assistant", "content": ""}]
    parts += [{name: message[name]} for name in ("content", "refusal") if message.get(name)]
    parts += [{"tool_calls": [call]} for call in calls]
    for delta in parts:
        yield "", {**head, "usage": None, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last: Json = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield "", {**head, "usage": None, "choices": [last]}
    yield "", {**head, "choices": []}


# ── Responses ──


def _responses(answer: Json) -> Iterator[Event]:
    numbers = itertools.count()
    begun: Json = {**answer, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    parts = [_named("response.created", response=begun), _named("response.in_progress", response=begun)]
    for index, item in enumerate(answer["output"]):
        parts += _item(index, item)
    parts.append(_named(f"response.{answer['status']}", response=answer))
    for name, data in parts:
        yield name, {**data, "sequence_number": next(numbers)}


def _item(index: int, item: Json) -> Iterator[Event]:
    is_message = item["type"] == "message"
    empty: Json = {"content": []} if is_message else {"arguments": ""}
    begun: Json = {**item, **empty, "status": "in_progress"}
    yield _named("response.output_item.added", output_index=index, item=begun)
    place = {"item_id": item["id"], "output_index": index}
    if is_message:
        yield from _part(item["content"][0], {**place, "content_index": 0})
    else:
        said: str = item["arguments"]
        yield _named("response.function_call_arguments.delta", **place, delta=said)
        yield _named("response.function_call_arguments.done", **place, name=item["name"], arguments=said)
    yield _named("response.output_item.done", output_index=index, item=item)


def _part(part: Json, place: Json) -> Iterator[Event]:
    kind, name = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
    more: Json = {} if kind == "refusal" else {"logprobs": []}
    yield _named("response.content_part.added", **place, part={**part, name: ""})
    yield _named(f"response.{kind}.delta", **place, delta=part[name], **more)
    yield _named(f"response.{kind}.done", **place, **{name: part[name]}, **more)
    yield _named("response.content_part.done", **place, part=part)


STREAMS: Mapping[str, Streamer] = {"/chat/completions": _chat, "/responses": _responses, "/messages": _messages}
