"""Prompts evaluated with GitHub Copilot: its program runs the loop, Outfitter governs what it calls."""

from outfitter.adapters.copilot.adapter import CopilotAdapter
from outfitter.adapters.copilot.config import CopilotAgent, CopilotClientConfig

__all__ = ["CopilotAdapter", "CopilotAgent", "CopilotClientConfig"]
