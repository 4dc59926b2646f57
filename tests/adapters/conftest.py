"""The adapters that the kit is run with."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import pytest

from outfitter.adapters import OpenAIAdapter, OpenAIClientConfig
from outfitter.testing import ScriptedModel
from tests.adapters.kit import MODEL_KEY, Candidate


def openai(api: Literal["responses", "chat"], model: ScriptedModel, **options: Any) -> OpenAIAdapter:  # noqa: ANN401 - options of the adapter
    """OpenAI's adapter at the scripted model."""
    config = OpenAIClientConfig(base_url=model.url, api_key=MODEL_KEY, max_retries=0)
    return OpenAIAdapter("scripted", api=api, client_config=config, **options)


CANDIDATES = (
    Candidate("openai-responses", "openai", partial(openai, "responses")),
    Candidate("openai-chat", "openai", partial(openai, "chat")),
)


@pytest.fixture
def anyio_backend() -> str:
    """The loop that Outfitter runs on."""
    return "asyncio"


@pytest.fixture(params=CANDIDATES, ids=lambda candidate: candidate.id)
def candidate(request: pytest.FixtureRequest) -> Candidate:
    """Each adapter in its turn."""
    return request.param
