"""The scripted model: the answers of each API, whole and streamed, as the provider's SDK or a plain reader has them."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from openai import AsyncOpenAI

from outfitter.testing import ModelCall, ModelCalls, ModelSays, ModelUsage, ScriptedModel, model_calls

TURN = ModelCalls((ModelCall("add", {"a": 1}), ModelCall("note", "{not json")), "Let me see.", ModelUsage(5, 3))


def sdk(model: ScriptedModel) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=model.url, api_key="any", max_retries=0)


def post(url: str, body: dict[str, Any]) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - loopback
        return answer.read()


def events(stream: bytes) -> list[dict[str, Any]]:
    """The data of each event; its name is the type in it."""
    read: list[dict[str, Any]] = []
    for frame in stream.decode().removesuffix("\n\n").split("\n\n"):
        name, data = frame.split("\n")
        read.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {read[-1]['type']}"
    return read


@pytest.mark.anyio
@pytest.mark.promise("TESTING-MODEL-STREAM")
async def test_a_streamed_chat_completion_is_put_together_by_the_provider_s_sdk() -> None:
    with ScriptedModel(TURN, ModelSays("half", is_cut=True), ModelSays("no", is_refusal=True)) as model:
        ask: Any = {"model": "any", "messages": [], "stream_options": {"include_usage": True}}
        async with sdk(model) as client:
            ended: list[Any] = []
            for _ in range(3):
                async with client.chat.completions.stream(**ask) as stream:
                    await stream.until_done()
                    ended.append(stream.current_completion_snapshot)
    called, cut, refused = ended
    message = called.choices[0].message
    assert (message.content, called.choices[0].finish_reason) == ("Let me see.", "tool_calls")
    assert [(call.function.name, call.function.arguments) for call in message.tool_calls] == [
        ("add", '{"a": 1}'),
        ("note", "{not json"),
    ]
    assert (called.usage.prompt_tokens, called.usage.completion_tokens) == (5, 3)
    assert (cut.choices[0].message.content, cut.choices[0].finish_reason) == ("half", "length")
    assert refused.choices[0].message.refusal == "no"


@pytest.mark.anyio
@pytest.mark.promise("TESTING-MODEL-STREAM")
async def test_a_streamed_response_is_put_together_by_the_provider_s_sdk() -> None:
    with ScriptedModel(TURN, ModelSays("half", is_cut=True), ModelSays("no", is_refusal=True)) as model:
        async with sdk(model) as client:
            ended: list[Any] = []
            for _ in range(3):
                async with client.responses.stream(model="any", input="go") as stream:
                    ended.append([event async for event in stream][-1])
    assert [event.type for event in ended] == ["response.completed", "response.incomplete", "response.completed"]
    called, cut, refused = (event.response for event in ended)
    text, add, note = called.output
    assert text.content[0].text == "Let me see."
    assert [(call.name, call.arguments) for call in (add, note)] == [("add", '{"a": 1}'), ("note", "{not json")]
    assert (called.usage.input_tokens, called.usage.output_tokens) == (5, 3)
    assert cut.output_text == "half"
    assert refused.output[0].content[0].refusal == "no"


@pytest.mark.promise("TESTING-MODEL-STREAM")
def test_a_streamed_message_has_the_events_of_anthropic_s_api() -> None:
    with ScriptedModel(TURN) as model:
        read = events(post(f"{model.origin}/v1/messages?beta=true", {"model": "any", "stream": True}))
    assert [event["type"] for event in read] == [
        "message_start",
        *("content_block_start", "content_block_delta", "content_block_stop") * 3,
        "message_delta",
        "message_stop",
    ]
    deltas = [event["delta"] for event in read if event["type"] == "content_block_delta"]
    assert [delta.get("text", delta.get("partial_json")) for delta in deltas] == [
        "Let me see.",
        '{"a": 1}',
        "{not json",
    ]
    assert (read[0]["message"]["content"], read[0]["message"]["usage"]["input_tokens"]) == ([], 5)
    assert (read[-2]["delta"]["stop_reason"], read[-2]["usage"]["output_tokens"]) == ("tool_use", 3)


@pytest.mark.parametrize(
    ("turn", "stop"),
    [
        (ModelSays("yes"), "end_turn"),
        (ModelSays("half", is_cut=True), "max_tokens"),
        (ModelSays("no", is_refusal=True), "refusal"),
    ],
)
def test_a_whole_message_says_why_it_ended(turn: ModelSays, stop: str) -> None:
    with ScriptedModel(turn) as model:
        answer = json.loads(post(f"{model.url}/messages", {"model": "any"}))
    assert (answer["content"], answer["stop_reason"]) == ([{"type": "text", "text": turn.text}], stop)


def test_what_the_model_is_not_asked_for_takes_no_turn() -> None:
    with ScriptedModel(ModelSays("one")) as model:
        assert json.loads(post(f"{model.url}/messages/count_tokens", {"model": "any"}))["input_tokens"] > 0
        with urllib.request.urlopen(f"{model.url}/models", timeout=60) as answer:  # noqa: S310 - loopback
            assert json.load(answer)["data"][0]["id"] == "scripted"
        post(f"{model.url}/messages", {"model": "any"})
    assert [request.path for request in model.asides] == ["/messages/count_tokens", "/models"]
    assert [request.path for request in model.requests] == ["/messages"]


def test_tools_and_answers_are_read_alike_from_every_api() -> None:
    told = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "3"}]}
    grouped = {"type": "namespace", "name": "demo", "tools": [{"type": "function", "name": "add"}]}
    with ScriptedModel(*[model_calls("add")] * 3) as model:
        post(f"{model.url}/messages", {"tools": [{"name": "add"}], "messages": [{"role": "user", "content": [told]}]})
        post(f"{model.url}/chat/completions", {"messages": [{"role": "tool", "content": "3"}]})
        output = {"type": "function_call_output", "output": "3"}
        post(f"{model.url}/responses", {"tools": [grouped], "input": [output]})
    assert [request.answers for request in model.requests] == [("3",)] * 3
    assert [request.tools for request in model.requests] == [("add",), (), ("demo.add",)]
