"""What is OpenAI's own: the two APIs as the real SDK sends them, and what its errors become."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, cast

import pytest
from openai import AsyncOpenAI

from outfitter.adapters import OpenAIAdapter, OpenAIClientConfig
from outfitter.errors import (
    Invalid,
    NeedsAuth,
    NotFound,
    OutfitterError,
    Unavailable,
    UpstreamLost,
    UpstreamTimeout,
)
from outfitter.prompt import MarkdownSection, Prompt, PromptTemplate
from outfitter.testing import ModelFails, ModelHangs, ModelSays, ModelTurn, ScriptedModel, ScriptedTool, model_calls
from tests.adapters.candidates import CHAT, RESPONSES
from tests.adapters.kit import MODEL_KEY, play, prompt_of, scripted

APIS = pytest.mark.parametrize("api", ["responses", "chat"])


@dataclass(frozen=True, slots=True)
class Finding:
    title: str


def adapter_at(url: str, **options: Any) -> OpenAIAdapter:  # noqa: ANN401 - options of the client
    return OpenAIAdapter("gpt-test", client_config=OpenAIClientConfig(url, MODEL_KEY, **{"max_retries": 0} | options))


# ── what is sent ──


@pytest.mark.anyio
@APIS
async def test_tools_have_the_form_that_the_api_takes(api: str) -> None:
    choice = {"anyOf": [{"properties": {"path": {"type": "string"}}}, {"properties": {"url": {"type": "string"}}}]}
    server = scripted("demo", ScriptedTool("open", "Opens", {"type": "object", **choice}, "echo"))
    bodies = await _bodies(api, prompt_of(mcps=[server]), ModelSays("ok"))
    (tool,) = bodies[0]["tools"]
    function = tool.get("function", tool)
    assert tool["type"] == "function"
    assert (function["name"], function["description"]) == ("demo_open", "Opens")
    assert function.get("strict") is (False if api == "responses" else None)
    properties = {"path": {"type": "string"}, "url": {"type": "string"}}
    assert function["parameters"] == {"type": "object", "properties": properties}


@pytest.mark.anyio
async def test_a_form_of_the_answer_is_asked_for_in_the_way_of_each_api() -> None:
    section = MarkdownSection(title="Task", key="task", template="Review it.")
    prompt = Prompt(PromptTemplate[list[Finding]](ns="kit", key="form", sections=[section]))
    (responses,) = await _bodies("responses", prompt, ModelSays('{"items": []}'))
    (chat,) = await _bodies("chat", prompt, ModelSays('{"items": []}'))
    form = responses["text"]["format"]
    assert (form["type"], form["strict"]) == ("json_schema", False)
    assert chat["response_format"]["json_schema"]["schema"] == form["schema"]
    assert form["schema"]["properties"]["items"]["items"] == {"$ref": "#/$defs/Finding"}
    assert set(form["schema"]["$defs"]) == {"Finding"}


@pytest.mark.anyio
@APIS
async def test_parameters_of_yours_go_with_every_request(api: str) -> None:
    (body,) = await _bodies(api, prompt_of(), ModelSays("ok"), params={"temperature": 0.5, "user": "kit"})
    assert (body["temperature"], body["user"], body["model"]) == (0.5, "kit", "scripted")


@pytest.mark.anyio
async def test_what_the_model_put_out_is_sent_back_as_it_was() -> None:
    bodies = await _bodies("responses", prompt_of(), model_calls("missing", {"a": 1}), ModelSays("ok"))
    prompt, call, output = bodies[1]["input"]
    assert prompt["role"] == "user"
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "missing", '{"a": 1}')
    assert (output["type"], output["call_id"]) == ("function_call_output", call["call_id"])


@pytest.mark.anyio
async def test_a_client_of_yours_is_used_and_stays_open() -> None:
    with ScriptedModel(ModelSays("one"), ModelSays("two")) as model:
        async with AsyncOpenAI(base_url=model.url, api_key=MODEL_KEY, max_retries=0) as client:
            adapter = OpenAIAdapter("gpt-test", client=client)
            assert [(await adapter.aevaluate(prompt_of())).text for _ in range(2)] == ["one", "two"]
            assert not client.is_closed()
            with pytest.raises(Invalid, match="await aevaluate"):
                adapter.evaluate(prompt_of())


async def _bodies(api: str, prompt: Prompt[Any], *turns: ModelTurn, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - options of the adapter
    candidate = CHAT if api == "chat" else RESPONSES
    return [request.body for request in (await play(candidate, prompt, *turns, **options)).requests]


# ── what goes wrong ──


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-FAULTS")
@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (400, Invalid, "refuses the request (HTTP 400): 'no good'"),
        (401, NeedsAuth, "refuses the credentials (HTTP 401)"),
        (403, NeedsAuth, "refuses the credentials (HTTP 403)"),
        (404, NotFound, "does not know it (HTTP 404): 'no good'"),
        (429, Unavailable, "takes no more requests now (HTTP 429): 'no good'"),
        (500, Unavailable, "fails (HTTP 500): 'no good'"),
    ],
)
async def test_an_error_of_the_provider_says_what_to_do(status: int, kind: type[OutfitterError], told: str) -> None:
    with ScriptedModel(ModelFails(status, "no good")) as model:
        with pytest.raises(kind) as caught:
            await adapter_at(model.url).aevaluate(prompt_of())
        assert len(model.requests) == 1
    assert told in str(caught.value)
    assert "model 'gpt-test'" in str(caught.value)


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-FAULTS")
@pytest.mark.parametrize("status", [400, 401, 500])
async def test_no_error_quotes_the_key(status: int) -> None:
    with ScriptedModel(ModelFails(status, f"Incorrect API key provided: {MODEL_KEY}")) as model:
        with pytest.raises(OutfitterError) as caught:
            await adapter_at(model.url).aevaluate(prompt_of())
        assert MODEL_KEY in model.requests[0].headers["authorization"]
    assert MODEL_KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert MODEL_KEY not in repr(adapter_at("http://127.0.0.1:9"))


@pytest.mark.anyio
async def test_a_provider_that_is_not_there_and_one_that_is_slow_are_told_apart() -> None:
    with pytest.raises(UpstreamLost, match="cannot be reached"):
        await adapter_at("http://127.0.0.1:9/v1").aevaluate(prompt_of())
    with ScriptedModel(ModelHangs()) as model, pytest.raises(UpstreamTimeout, match="did not answer in time"):
        await adapter_at(model.url, timeout=0.2).aevaluate(prompt_of())


@pytest.mark.anyio
async def test_requests_are_repeated_by_the_sdk_as_it_is_configured() -> None:
    with ScriptedModel(ModelFails(500), ModelSays("at last")) as model:
        response = await adapter_at(model.url, max_retries=1).aevaluate(prompt_of())
    assert (response.text, response.rounds, len(model.requests)) == ("at last", 1, 2)


def test_without_a_key_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(NeedsAuth, match="OPENAI_API_KEY"):
        OpenAIAdapter("gpt-test").evaluate(prompt_of())


def test_an_api_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Invalid, match="no API 'assistants'"):
        OpenAIAdapter("gpt-test", api=cast("Any", "assistants"))


@pytest.mark.promise("ADAPT-LAZY")
def test_the_sdk_is_imported_when_a_prompt_is_evaluated_and_not_before() -> None:
    program = (
        "import sys\n"
        "from outfitter.adapters import OpenAIAdapter\n"
        "from outfitter.prompt import Prompt, PromptTemplate\n"
        "adapter = OpenAIAdapter('gpt-test')\n"
        "assert 'openai' not in sys.modules\n"
        "sys.modules['openai'] = None\n"
        "adapter.evaluate(Prompt(PromptTemplate(ns='a', key='b', sections=[])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert "Unavailable: the OpenAI SDK is not installed (pip install 'outfitter[openai]')" in done.stderr
