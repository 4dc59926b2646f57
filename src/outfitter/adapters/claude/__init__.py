"""Prompts evaluated with the Claude Agent SDK: Claude Code runs the loop, Outfitter governs what it calls."""

from outfitter.adapters.claude.adapter import ClaudeAgentSDKAdapter
from outfitter.adapters.claude.config import ClaudeAgentSDKClientConfig
from outfitter.adapters.claude.isolation import IsolationConfig, NetworkPolicy, SandboxConfig

__all__ = [
    "ClaudeAgentSDKAdapter",
    "ClaudeAgentSDKClientConfig",
    "IsolationConfig",
    "NetworkPolicy",
    "SandboxConfig",
]
