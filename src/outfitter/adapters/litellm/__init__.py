"""Prompts evaluated with any of the providers that LiteLLM speaks to."""

from outfitter.adapters.litellm.adapter import LiteLLMAdapter, LiteLLMClientConfig

__all__ = ["LiteLLMAdapter", "LiteLLMClientConfig"]
