"""Runs by the real SDKs: two agents with different chains at one server, each sees its own documents and no header."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from outfitter.testing import ModelSays, ScriptedModel, model_calls
from tests.adapters.copilot_program import COPILOT_PROGRAM, copilot_env
from tests.examples.test_scoped_servers import ALPHA, BETA, CATALOG, STORE_KEY, server, variables
from tests.runner.kit import team

pytestmark = pytest.mark.anyio
MODEL_KEY = "sk-model-key-of-a-run"
ALPHA_TITLE, BETA_TITLE = "Alpha retro", "Beta retro"


def executor(kind: str, model: ScriptedModel) -> dict[str, Any]:
    """How an agent is executed by one of the SDKs, with everything it says going to the scripted model."""
    env: Mapping[str, str]
    match kind:
        case "claude-code":
            env = {"ANTHROPIC_BASE_URL": model.origin, "ANTHROPIC_API_KEY": MODEL_KEY}
        case "copilot":
            place = {"COPILOT_PROVIDER_BASE_URL": model.url, "COPILOT_PROVIDER_API_KEY": MODEL_KEY}
            env = {**copilot_env(), **place, "COPILOT_CLI_PATH": str(COPILOT_PROGRAM)}
            env = {name: value for name, value in env.items() if name != "PATH"}
        case "litellm":
            env = {"OPENAI_API_BASE": model.url, "OPENAI_API_KEY": MODEL_KEY}
        case _:
            env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": MODEL_KEY}
    named = {"litellm": "openai/scripted", "copilot": "gpt-4.1"}.get(kind, "scripted")
    return {"type": kind, "model": named, "env": dict(env), "timeout": 300}


def catalog(folder: Path, kind: str, model: ScriptedModel) -> None:
    """The example's agents, each executed by the SDK and with the documents alone."""
    shutil.copytree(CATALOG, folder / "outfitter")
    for name in (ALPHA, BETA):
        path = folder / "outfitter" / "agents" / f"{name}.json"
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "executor": executor(kind, model)}))


@pytest.mark.promise("RUNNER-AGENTS")
@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("claude-code", "mcp__docs__list_documents"),
        ("copilot", "docs-list_documents"),
        ("openai", "docs_list_documents"),
        ("litellm", "docs_list_documents"),
    ],
)
async def test_two_agents_of_one_server_see_their_own_documents_and_no_header(
    tmp_path: Path, kind: str, shown: str
) -> None:
    turns = [turn for word in ("alpha is told", "beta is told") for turn in (model_calls(shown), ModelSays(word))]
    with ScriptedModel(*turns) as model, server(tmp_path, "context_store", variables(tmp_path)) as store:
        await anyio.to_thread.run_sync(catalog, tmp_path, kind, model)
        own = variables(tmp_path, store, "http://127.0.0.1:9/mcp")
        async with team(tmp_path, variables=own) as one:
            heard: dict[str, str] = {}
            with one.runner() as runner:
                for name, word in ((ALPHA, "alpha is told"), (BETA, "beta is told")):
                    before = len(model.requests)
                    run = await one.end_of(await one.run("What is there?", agent=name))
                    assert (run["state"], run["result"]) == ("done", word), (run, runner.log())
                    heard[name] = "\n".join(request.text for request in model.requests[before:])
                    (event,) = [event for event in await one.events(run["id"]) if event["type"] == "tool"]
                    assert event["data"]["server"] == "docs"
            status, calls, _ = await one.up.api("GET", f"/calls?agent={ALPHA}")
            assert status == 200
            assert [call["tool"] for call in calls["items"]] == ["list_documents"]
            log = runner.log()
    assert ALPHA_TITLE in heard[ALPHA]
    assert BETA_TITLE in heard[BETA]
    assert BETA_TITLE not in heard[ALPHA]
    assert ALPHA_TITLE not in heard[BETA]
    for text in (*heard.values(), log):
        for hidden in (STORE_KEY, "X-Context-Namespace", "oft_", MODEL_KEY, one.token):
            assert hidden not in text
