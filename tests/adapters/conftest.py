"""Every test with a ``candidate`` is run with each adapter."""

from __future__ import annotations

import pytest

from tests.adapters.candidates import CANDIDATES
from tests.adapters.kit import Candidate


@pytest.fixture
def anyio_backend() -> str:
    """The loop that Outfitter runs on."""
    return "asyncio"


@pytest.fixture(params=CANDIDATES, ids=lambda candidate: candidate.id)
def candidate(request: pytest.FixtureRequest) -> Candidate:
    """Each adapter in its turn."""
    return request.param
