"""The adapters that the kit is run with, each at the scripted model. A new adapter is one more line."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from outfitter.adapters import OpenAIAdapter, OpenAIClientConfig
from outfitter.testing import ScriptedModel
from tests.adapters.kit import MODEL_KEY, Candidate


def openai(api: Literal["responses", "chat"], model: ScriptedModel, **options: Any) -> OpenAIAdapter:  # noqa: ANN401 - options of the adapter
    """OpenAI's adapter at the scripted model."""
    config = OpenAIClientConfig(base_url=model.url, api_key=MODEL_KEY, max_retries=0)
    return OpenAIAdapter("scripted", api=api, client_config=config, **options)


RESPONSES = Candidate("openai-responses", "openai", partial(openai, "responses"))
CHAT = Candidate("openai-chat", "openai", partial(openai, "chat"))
CANDIDATES = (RESPONSES, CHAT)
