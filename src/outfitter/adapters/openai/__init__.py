"""Prompts evaluated with OpenAI's Responses API and Chat Completions."""

from outfitter.adapters.openai.adapter import OpenAIAdapter, OpenAIClientConfig

__all__ = ["OpenAIAdapter", "OpenAIClientConfig"]
