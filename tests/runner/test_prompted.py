"""Runs executed with a model: the SDK in a process of its own, its servers at the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.testing import ModelSays, Script, ScriptedModel, model_calls, serve_http
from tests.runner.kit import PATIENCE, Team, team

pytestmark = pytest.mark.anyio


async def prompted(one: Team, name: str, servers: dict[str, Any], **executor: Any) -> None:  # noqa: ANN401 - fields of an executor
    document = {"name": name, "system_prompt": "Be $brief.", "mcpServers": servers, "executor": executor}
    status, body, _ = await one.up.api("POST", "/agents", document)
    assert status == 201, body
    if executor.get("env"):
        status, body, _ = await one.up.api("POST", f"/agents/{name}/approve", version=1)
        assert status == 200, body


async def recorded(one: Team) -> list[tuple[str, str, str, str]]:
    """The calls at the gateway, once there is one: they are moved to where they are looked for in the background."""
    with anyio.fail_after(PATIENCE):
        while True:
            _, calls, _ = await one.up.api("GET", "/calls")
            if calls["items"]:
                return [(call["agent"], call["run_id"], call["server"], call["tool"]) for call in calls["items"]]
            await anyio.sleep(0.1)


@pytest.mark.promise("RUNNER-PROMPTED")
async def test_a_model_is_asked_and_its_calls_go_through_the_gateway(tmp_path: Path) -> None:
    with ScriptedModel(model_calls("x_echo", {"text": "hi"}), ModelSays("It said hi.")) as model:
        async with serve_http(Script("x")) as served, team(tmp_path) as one:
            status, _, _ = await one.up.api("POST", "/mcp-servers", {"id": "x", "url": served.url})
            assert status == 201
            env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "${MY_KEY_HERE}"}
            await prompted(one, "worker", {"x": {"ref": "x"}}, type="openai", model="any", env=env)
            run_id = await one.run("Echo $HOME and ${more}.")
            with one.runner() as runner:
                run = await one.end_of(run_id)
                events = {event["type"]: event["data"] for event in await one.events(run_id)}
            assert (run["state"], run["result"]) == ("done", "It said hi."), (run, runner.log())
            assert (events["tool"]["name"], events["tool"]["outcome"]) == ("x_echo", "done")
            assert events["usage"]["input_tokens"] >= 0
            assert await recorded(one) == [("worker", run_id, "x", "echo")]


async def test_an_executor_that_cannot_be_used_says_what_is_missing(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        await prompted(one, "modelless", {}, type="openai")
        await prompted(one, "keyless", {}, type="openai", model="any")
        with one.runner():
            modelless = await one.end_of(await one.run("hi", "modelless"))
            keyless = await one.end_of(await one.run("hi", "keyless"))
        assert (modelless["state"], keyless["state"]) == ("failed", "failed")
        assert "names no model" in modelless["error"]["message"]
        assert "OPENAI_API_KEY" in keyless["error"]["message"]
