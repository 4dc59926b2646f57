"""The audit database behind its port: every test that asks for ``audit`` is run on a file and on a PostgreSQL."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from outfitter.basics import Secret
from outfitter.storage import AuditStore, open_audit


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database; empty for a file in the state folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def audit(tmp_path: Path, database: str) -> Generator[AuditStore]:
    """An empty audit database."""
    store = open_audit(tmp_path, Secret(database) if database else None)
    yield store
    store.close()
