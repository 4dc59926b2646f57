"""A coordinator over a real database: every test that takes ``coordinator`` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from outfitter.coordinator import Coordinator, open_coordinator
from outfitter.storage import KeyRing, open_database


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'registry.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def keys(tmp_path: Path) -> KeyRing:
    return KeyRing(tmp_path / "state" / "registry.keys")


@pytest.fixture
async def coordinator(anyio_backend: str, database_url: str, keys: KeyRing) -> AsyncGenerator[Coordinator]:
    assert anyio_backend == "asyncio"
    async with open_database(database_url, keys) as database, open_coordinator(database) as opened:
        yield opened


@pytest.fixture
async def local(anyio_backend: str, tmp_path: Path, keys: KeyRing) -> AsyncGenerator[Coordinator]:
    """A coordinator on SQLite alone, for what no database has a say in."""
    assert anyio_backend == "asyncio"
    url = f"sqlite:///{tmp_path / 'registry.db'}"
    async with open_database(url, keys) as database, open_coordinator(database) as opened:
        yield opened
