"""Asynchronous tests run on asyncio."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The loop that Outfitter runs on."""
    return "asyncio"
