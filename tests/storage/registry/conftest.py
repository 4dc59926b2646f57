"""One storage kit, run on a SQLite file and on a real PostgreSQL: ``place`` is a database that does not exist yet."""

from __future__ import annotations

import pytest

from tests.storage.registry.places import Place


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    folder = request.getfixturevalue("tmp_path") / "state"
    is_file = request.param == "sqlite"
    url = f"sqlite:///{folder / 'registry.db'}" if is_file else request.getfixturevalue("postgres_url")
    return Place(url, folder)
