"""The adapters that the kit is run with, each at the scripted model. A new adapter is one more line."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from outfitter.adapters import (
    ClaudeAgentSDKAdapter,
    ClaudeAgentSDKClientConfig,
    CopilotAdapter,
    CopilotClientConfig,
    LiteLLMAdapter,
    LiteLLMClientConfig,
    OpenAIAdapter,
    OpenAIClientConfig,
)
from outfitter.testing import ScriptedModel
from tests.adapters.copilot_program import COPILOT_PROGRAM, copilot_env
from tests.adapters.kit import MODEL_KEY, Candidate


def openai(api: Literal["responses", "chat"], model: ScriptedModel, **options: Any) -> OpenAIAdapter:  # noqa: ANN401 - options of the adapter
    """OpenAI's adapter at the scripted model."""
    config = OpenAIClientConfig(base_url=model.url, api_key=MODEL_KEY, max_retries=0)
    return OpenAIAdapter("scripted", api=api, client_config=config, **options)


def litellm(model: ScriptedModel, **options: Any) -> LiteLLMAdapter:  # noqa: ANN401 - options of the adapter
    """LiteLLM's adapter at the scripted model."""
    config = LiteLLMClientConfig(api_base=model.url, api_key=MODEL_KEY, max_retries=0)
    return LiteLLMAdapter("openai/scripted", client_config=config, **options)


def claude(model: ScriptedModel, **options: Any) -> ClaudeAgentSDKAdapter:  # noqa: ANN401 - options of the client
    """Claude's adapter at the scripted model; one way with servers has another name there."""
    named = {"route": options.pop("mcp")} | options if "mcp" in options else options
    config = ClaudeAgentSDKClientConfig(base_url=model.origin, api_key=MODEL_KEY, max_retries=1, **named)
    return ClaudeAgentSDKAdapter("scripted", client_config=config)


def claude_name(tool: str) -> str:
    """How Claude Code shows a tool of Outfitter to the model."""
    return f"mcp__wink__{tool}"


def copilot(model: ScriptedModel, **options: Any) -> CopilotAdapter:  # noqa: ANN401 - options of the client
    """Copilot's adapter at the scripted model; one way with servers has another name there."""
    route = options.pop("mcp", options.pop("route", "bridge"))
    provider = {"type": "openai", "wire_api": "completions", "base_url": model.url, "api_key": MODEL_KEY}
    given: dict[str, Any] = {"env": copilot_env(), "cli_path": COPILOT_PROGRAM, "timeout": 240.0, **options}
    return CopilotAdapter("gpt-4.1", client_config=CopilotClientConfig(provider=provider, **given), route=route)


RESPONSES = Candidate("openai-responses", "openai", partial(openai, "responses"))
CHAT = Candidate("openai-chat", "openai", partial(openai, "chat"))
LITELLM = Candidate("litellm", "litellm", litellm)
CANDIDATES = (RESPONSES, CHAT, LITELLM)
CLAUDE = Candidate("claude", "claude", claude, claude_name)
"""Not among the others: a run takes seconds, so ``test_claude_kit`` chooses what it is tried with."""
COPILOT = Candidate("copilot", "copilot", copilot)
"""Not among the others either: ``test_copilot_kit`` chooses."""
