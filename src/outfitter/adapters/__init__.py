"""How does an agent SDK or a model get it? One port, one adapter for each.

    response = OpenAIAdapter("gpt-5").evaluate(prompt, session=session, deadline=Deadline.after(60))
    response.text, response.output, response.tool_calls, response.usage

``port`` is what every adapter is, ``response`` what it gives. ``outfit`` is a prompt fitted out for one evaluation:
rendered, its servers connected, its tools callable; every adapter stands on it. ``loop`` is the tool loop for APIs that
have none, over a ``conversation`` in the form of its API. An adapter's SDK is imported when a prompt is evaluated.
"""

from outfitter.adapters.claude import (
    ClaudeAgentSDKAdapter,
    ClaudeAgentSDKClientConfig,
    IsolationConfig,
    NetworkPolicy,
    SandboxConfig,
)
from outfitter.adapters.conversation import Conversation, Offer, ToolAnswer, ToolUse, Turn
from outfitter.adapters.copilot import CopilotAdapter, CopilotAgent, CopilotClientConfig
from outfitter.adapters.gateway import GatewayRoute
from outfitter.adapters.litellm import LiteLLMAdapter, LiteLLMClientConfig
from outfitter.adapters.loop import converse
from outfitter.adapters.openai import OpenAIAdapter, OpenAIClientConfig
from outfitter.adapters.outfit import Fitting, Limits, Outfit
from outfitter.adapters.port import Adapter
from outfitter.adapters.response import MadeCall, PromptResponse, StopReason, Usage

__all__ = [
    "Adapter",
    "ClaudeAgentSDKAdapter",
    "ClaudeAgentSDKClientConfig",
    "Conversation",
    "CopilotAdapter",
    "CopilotAgent",
    "CopilotClientConfig",
    "Fitting",
    "GatewayRoute",
    "IsolationConfig",
    "Limits",
    "LiteLLMAdapter",
    "LiteLLMClientConfig",
    "MadeCall",
    "NetworkPolicy",
    "Offer",
    "OpenAIAdapter",
    "OpenAIClientConfig",
    "Outfit",
    "PromptResponse",
    "SandboxConfig",
    "StopReason",
    "ToolAnswer",
    "ToolUse",
    "Turn",
    "Usage",
    "converse",
]
