"""One prompt, four SDKs: the same tools are offered, the same call is denied for the same reason."""

from __future__ import annotations

from typing import Any

import pytest

from outfitter.adapters import CopilotAdapter, CopilotClientConfig, OpenAIAdapter
from outfitter.catalog import MCPServer
from outfitter.errors import Invalid
from outfitter.policy import SequentialDependencyPolicy
from outfitter.testing import ModelSays, model_calls
from outfitter.tools import Tool
from tests.adapters.candidates import CLAUDE, COPILOT, LITELLM, RESPONSES
from tests.adapters.kit import Candidate, play, prompt_of, scripted


def note(text: str) -> str:
    """Keep a note."""
    return f"noted: {text}"


async def told_by(candidate: Candidate) -> dict[str, Any]:
    """What the model was offered and told, and what was remembered of it."""
    policy = SequentialDependencyPolicy({"add": {"note"}})
    prompt = prompt_of(Tool.wrap(note), mcps=[scripted("demo", "add", "echo")], policies=[policy])
    add = model_calls(candidate.shown("demo_add"), {"a": 1, "b": 2})
    played = await play(
        candidate, prompt, add, model_calls(candidate.shown("note"), {"text": "x"}), add, ModelSays("3")
    )
    wanted = {candidate.shown(name): name for name in ("note", "demo_add", "demo_echo")}
    return {
        "tools": sorted(wanted[tool] for tool in played.requests[0].tools if tool in wanted),
        "others": [tool for tool in played.requests[0].tools if tool not in wanted],
        "events": [(event.name, event.mcp_server, event.decision, event.result.message) for event in played.events],
        "text": played.response.text,
    }


@pytest.mark.anyio
@pytest.mark.promise("B18")
async def test_four_adapters_give_the_same_tools_denials_and_events() -> None:
    first = await told_by(RESPONSES)
    assert first["tools"] == ["demo_add", "demo_echo", "note"]
    assert [decision for _, _, decision, _ in first["events"]] == ["deny", "allow", "allow"]
    for candidate in (LITELLM, CLAUDE, COPILOT):
        assert await told_by(candidate) == first, candidate.id


@pytest.mark.promise("B18")
def test_an_adapter_that_cannot_do_a_thing_says_so() -> None:
    own = MCPServer.http("own", "http://127.0.0.1:9/mcp")
    with pytest.raises(Invalid, match="no way"):
        OpenAIAdapter("m", mcp="native")  # pyright: ignore[reportArgumentType]
    with pytest.raises(Invalid, match="no route 'tunnel'"):
        CopilotAdapter("m", route="tunnel")  # pyright: ignore[reportArgumentType]
    with pytest.raises(Invalid, match="told to ignore"):
        CopilotAdapter("m", client_config=CopilotClientConfig(mcp_servers=[own]), route="ignore")
