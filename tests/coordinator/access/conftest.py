"""Asynchronous tests run on asyncio, on both databases."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The loop that Outfitter runs on."""
    return "asyncio"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/registry.db"
    return cast("str", request.getfixturevalue("postgres_url"))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an empty SQLite database, where the kind of database is not the point."""
    return f"sqlite:///{tmp_path}/registry.db"
