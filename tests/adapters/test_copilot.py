"""What is Copilot's own: its program, its provider's errors, and what is refused before anything is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from outfitter.adapters import CopilotAdapter, CopilotAgent, CopilotClientConfig, GatewayRoute
from outfitter.bridge import McpConnectionPool
from outfitter.errors import Invalid, NeedsAuth, NotFound, OutfitterError, PromptValidationError, Unavailable
from outfitter.testing import ModelFails, ModelSays, ScriptedModel, model_calls
from outfitter.tools import Tool
from tests.adapters.candidates import COPILOT
from tests.adapters.copilot_program import copilot_env
from tests.adapters.kit import DEAD, MODEL_KEY, play, prompt_of
from tests.adapters.processes import Seen, started


@pytest.mark.anyio
@pytest.mark.promise("COPILOT-FAULTS")
@pytest.mark.parametrize(("status", "kind"), [(400, Invalid), (401, NeedsAuth), (404, NotFound)])
async def test_an_error_of_the_provider_says_what_to_do_and_quotes_no_key(
    status: int, kind: type[OutfitterError]
) -> None:
    with ScriptedModel(*[ModelFails(status, f"no good: {MODEL_KEY}")] * 4) as model:
        with pytest.raises(kind, match=f"HTTP {status}") as caught:
            await COPILOT.make(model).aevaluate(prompt_of())
        assert MODEL_KEY in model.requests[0].headers["authorization"]
    assert MODEL_KEY not in str(caught.value)
    assert "model 'gpt-4.1'" in str(caught.value)


@pytest.mark.anyio
async def test_nothing_of_this_machine_reaches_the_program_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "canary-of-the-machine")
    monkeypatch.setenv("GITHUB_TOKEN", "canary-of-github")
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, copilot_env()[name])
    found: list[Seen] = []

    def look() -> str:
        """Look."""
        found.extend(started())
        return "seen"

    played = await play(COPILOT, prompt_of(Tool.wrap(look)), model_calls("look"), ModelSays("done"), env=None)
    assert played.response.text == "done"
    assert found
    assert not [seen for seen in found if "canary" in repr(seen.environ) + seen.argv]
    assert not [seen.argv for seen in found if seen.is_alive]


def test_without_its_program_nothing_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("COPILOT_CLI_PATH", raising=False)
    with pytest.raises(Unavailable, match="COPILOT_CLI_PATH"):
        CopilotAdapter("any").evaluate(prompt_of())
    config = CopilotClientConfig(cli_path=tmp_path / "nowhere")
    with pytest.raises(Unavailable, match="npm install @github/copilot"):
        CopilotAdapter("any", client_config=config).evaluate(prompt_of())


def test_what_it_cannot_do_is_refused() -> None:
    def made(route: str = "bridge", **options: Any) -> CopilotAdapter:  # noqa: ANN401 - options of the client
        return CopilotAdapter("any", client_config=CopilotClientConfig(**options), route=cast("Any", route))

    helper = CopilotAgent("helper", "Help.", mcp_servers=[DEAD])
    gateway = GatewayRoute("http://127.0.0.1:9/mcp/a", "token-of-the-gateway")
    refusals: tuple[tuple[str, dict[str, Any]], ...] = (
        ("no route 'tunnel'", {"route": "tunnel"}),
        ("belong together", {"route": "gateway"}),
        ("belong together", {"gateway": gateway}),
        ("a pool is for route='bridge'", {"route": "native", "pool": McpConnectionPool()}),
        ("told to ignore them", {"route": "ignore", "mcp_servers": [DEAD]}),
        ("agent 'helper' has servers of its own", {"agents": [helper]}),
        ("two agents have one name", {"route": "native", "agents": [helper, helper]}),
        ("no agent 'other'", {"agent": "other"}),
    )
    for told, options in refusals:
        with pytest.raises(Invalid, match=told):
            made(**options)
    with pytest.raises(PromptValidationError, match="'dead' twice"):
        made(mcp_servers=[DEAD, DEAD])
    shown = repr(made("gateway", gateway=gateway, provider={"api_key": MODEL_KEY}, env={"A": "secret-variable"}))
    assert not [secret for secret in (MODEL_KEY, "token-of-the-gateway", "secret-variable") if secret in shown]


@pytest.mark.promise("ADAPT-LAZY")
def test_the_sdk_is_imported_when_a_prompt_is_evaluated_and_not_before() -> None:
    program = (
        "import sys\n"
        "from outfitter.adapters import CopilotAdapter\n"
        "from outfitter.prompt import Prompt, PromptTemplate\n"
        "adapter = CopilotAdapter('any')\n"
        "assert 'copilot' not in sys.modules and 'pydantic' not in sys.modules\n"
        "sys.modules['copilot'] = None\n"
        "adapter.evaluate(Prompt(PromptTemplate(ns='a', key='b', sections=[])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert "Unavailable: the GitHub Copilot SDK is not installed (pip install 'outfitter[copilot]')" in done.stderr
