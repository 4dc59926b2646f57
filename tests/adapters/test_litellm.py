"""What is LiteLLM's own: how it is loaded, what it leaves behind, and what its errors become."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.adapters import LiteLLMAdapter, LiteLLMClientConfig
from outfitter.errors import (
    Invalid,
    NeedsAuth,
    NotFound,
    OutfitterError,
    Unavailable,
    UpstreamLost,
    UpstreamTimeout,
)
from outfitter.testing import ModelFails, ModelHangs, ModelSays, ScriptedModel, model_calls
from outfitter.tools import Tool
from tests.adapters.candidates import LITELLM
from tests.adapters.kit import MODEL_KEY, play, prompt_of


def adapter_at(url: str | None, model: str = "openai/test", **options: Any) -> LiteLLMAdapter:  # noqa: ANN401 - options of the client
    given: dict[str, Any] = {"api_key": MODEL_KEY, **options}
    return LiteLLMAdapter(model, client_config=LiteLLMClientConfig(url, **given))


# ── what is sent ──


@pytest.mark.anyio
async def test_parameters_and_headers_of_yours_go_with_every_request() -> None:
    with ScriptedModel(ModelSays("ok")) as model:
        config = LiteLLMClientConfig(model.url, MODEL_KEY, headers={"X-Team": "kit"})
        adapter = LiteLLMAdapter("openai/test", client_config=config, params={"temperature": 0.5, "top_p": 0.9})
        await adapter.aevaluate(prompt_of())
    (request,) = model.requests
    assert (request.body["temperature"], request.body["top_p"], request.body["model"]) == (0.5, 0.9, "test")
    assert (request.path, request.headers["x-team"]) == ("/chat/completions", "kit")


@pytest.mark.anyio
async def test_requests_are_repeated_as_it_is_configured() -> None:
    with ScriptedModel(ModelFails(500), ModelSays("at last")) as model:
        response = await adapter_at(model.url, max_retries=1).aevaluate(prompt_of())
    assert (response.text, response.rounds, len(model.requests)) == ("at last", 1, 2)


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
            await adapter_at(model.url, max_retries=0).aevaluate(prompt_of())
        assert len(model.requests) == 1
    assert told in str(caught.value)
    assert "model 'openai/test'" in str(caught.value)


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-FAULTS")
@pytest.mark.parametrize("status", [400, 401, 500])
async def test_no_error_quotes_a_key(
    status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", "sk-key-of-the-environment")
    said = f"Incorrect API key provided: {MODEL_KEY}, not sk-key-of-the-environment"
    with ScriptedModel(ModelFails(status, said)) as model:
        with pytest.raises(OutfitterError) as caught:
            await adapter_at(model.url, max_retries=0).aevaluate(prompt_of())
        assert MODEL_KEY in model.requests[0].headers["authorization"]
    assert "sk-key" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "sk-key" not in repr(adapter_at("http://127.0.0.1:9"))
    assert "sk-key" not in caplog.text


@pytest.mark.anyio
async def test_a_provider_that_is_not_there_and_one_that_is_slow_are_told_apart() -> None:
    with pytest.raises(UpstreamLost, match="cannot be reached"):
        await adapter_at("http://127.0.0.1:9/v1", max_retries=0).aevaluate(prompt_of())
    with ScriptedModel(ModelHangs()) as model, pytest.raises(UpstreamTimeout, match="did not answer in time"):
        await adapter_at(model.url, timeout=0.2, max_retries=0).aevaluate(prompt_of())


@pytest.mark.anyio
async def test_what_can_be_known_before_it_is_sent_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NeedsAuth, match="no API key"):
        await adapter_at(None, api_key=None).aevaluate(prompt_of())
    with pytest.raises(NeedsAuth, match="credentials"):
        await adapter_at(None, "anthropic/test", api_key=None).aevaluate(prompt_of())
    with pytest.raises(Invalid, match="LLM Provider NOT provided"):
        await adapter_at(None, "nobody-knows-it").aevaluate(prompt_of())
    config = LiteLLMClientConfig("http://127.0.0.1:9", MODEL_KEY)
    with pytest.raises(Invalid, match="drop_params"):
        await LiteLLMAdapter("cohere/test", client_config=config, params={"logprobs": True}).aevaluate(prompt_of())


# ── what is left behind ──


def ping() -> str:
    """Answer."""
    return "pong"


def test_each_loop_leaves_no_client_and_no_record_behind() -> None:
    import litellm

    kept: dict[str, object] = litellm.in_memory_llm_clients_cache.cache_dict  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    before = set(kept)
    turns = [model_calls("ping"), ModelSays("one")] * 3
    with warnings.catch_warnings(record=True) as told, ScriptedModel(*turns) as model:
        warnings.simplefilter("always")
        adapter = LITELLM.make(model)
        for _ in range(2):
            assert adapter.evaluate(prompt_of(Tool.wrap(ping))).text == "one"
            assert set(kept) == before
        assert asyncio.run(adapter.aevaluate(prompt_of(Tool.wrap(ping)))).text == "one"
        assert set(kept) == before
    assert [str(warning.message) for warning in told] == []


@pytest.mark.anyio
async def test_an_evaluation_that_ends_does_not_disturb_another_in_the_same_loop() -> None:
    begun, over = anyio.Event(), anyio.Event()

    async def wait() -> str:
        """Wait until the other has ended."""
        begun.set()
        with anyio.fail_after(60):
            await over.wait()
        return "waited"

    answers: list[str] = []
    with ScriptedModel(model_calls("wait"), ModelSays("short"), ModelSays("long")) as model:
        adapter = LITELLM.make(model)

        async def long() -> None:
            answers.append((await adapter.aevaluate(prompt_of(Tool.wrap(wait)))).text)

        async with anyio.create_task_group() as group:
            group.start_soon(long)
            await begun.wait()
            answers.append((await adapter.aevaluate(prompt_of())).text)
            over.set()
    assert answers == ["short", "long"]


@pytest.mark.anyio
async def test_callbacks_of_litellm_hear_of_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger

    heard: list[str] = []

    class Ear(CustomLogger):
        async def async_log_success_event(
            self,
            kwargs: Any,  # noqa: ANN401 - LiteLLM's own signature
            response_obj: Any,  # noqa: ANN401, ARG002 - LiteLLM's own signature
            start_time: Any,  # noqa: ANN401, ARG002 - LiteLLM's own signature
            end_time: Any,  # noqa: ANN401, ARG002 - LiteLLM's own signature
        ) -> None:
            heard.append(kwargs["model"])

    monkeypatch.setattr(litellm, "callbacks", [Ear()])
    await play(LITELLM, prompt_of(Tool.wrap(ping)), model_calls("ping"), ModelSays("ok"))
    assert heard == ["scripted", "scripted"]


@pytest.mark.promise("ADAPT-LAZY")
def test_litellm_is_imported_when_a_prompt_is_evaluated_and_not_before() -> None:
    program = (
        "import sys\n"
        "from outfitter.adapters import LiteLLMAdapter\n"
        "from outfitter.prompt import Prompt, PromptTemplate\n"
        "adapter = LiteLLMAdapter('openai/test')\n"
        "assert 'litellm' not in sys.modules and 'openai' not in sys.modules\n"
        "sys.modules['litellm'] = None\n"
        "adapter.evaluate(Prompt(PromptTemplate(ns='a', key='b', sections=[])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert "Unavailable: LiteLLM is not installed (pip install 'outfitter[litellm]')" in done.stderr


def test_loading_it_asks_no_network_reads_no_env_file_and_keeps_what_you_have_set(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("FROM_A_FILE=yes\n")
    program = (
        "import os, socket, sys\n"
        "from outfitter.adapters import LiteLLMAdapter\n"
        "from outfitter.prompt import Prompt, PromptTemplate\n"
        "asked = []\n"
        "sys.addaudithook(lambda event, args: asked.append(args) if event == 'socket.getaddrinfo' else None)\n"
        "try:\n"
        "    LiteLLMAdapter('nobody-knows-it').evaluate(Prompt(PromptTemplate(ns='a', key='b', sections=[])))\n"
        "except Exception as error:\n"
        "    print(type(error).__name__)\n"
        "import litellm\n"
        "names = ('FROM_A_FILE', 'LITELLM_LOCAL_MODEL_COST_MAP', 'LITELLM_MODE')\n"
        "print(asked, [name in os.environ for name in names], litellm.telemetry, litellm.suppress_debug_info)\n"
    )
    names = ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_MODE")
    env = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        cwd=tmp_path,
    )
    assert done.stdout.splitlines() == ["Invalid", "[] [False, False, False] False True"], done.stderr
