"""Asynchronous tests run on asyncio; each has a service of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.coordinator.api.kit import Served, service


@pytest.fixture
def anyio_backend() -> str:
    """The loop that Outfitter runs on."""
    return "asyncio"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served]:
    """A running service with an empty registry."""
    async with service(tmp_path) as running:
        yield running
