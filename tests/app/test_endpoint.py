"""``outfitter gateway --stdio``: an endpoint without a port, of the same catalog, with the same records and spans."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from outfitter.testing import Script, serve_http
from tests.app.kit import Place
from tests.telemetry.kit import receiver

pytestmark = pytest.mark.anyio
NEW = {"name": "new", "mcpServers": {"x": {"ref": "x"}}}


@asynccontextmanager
async def endpoint(place: Place, agent: str, *options: str) -> AsyncGenerator[Client]:
    """A client of the command, started as a client starts it."""
    arguments = ["-m", "outfitter", "gateway", "--stdio", "--agent", agent, *options]
    started = StdioServerParameters(command=sys.executable, args=arguments, env=place.environment)
    async with Client(stdio_client(started)) as client:
        yield client


@pytest.mark.promise("GW-STDIO-REGISTRY")
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_it_serves_the_agents_of_the_registry_and_of_the_folder_when_told_so(
    tmp_path: Path, request: pytest.FixtureRequest, database: str
) -> None:
    place = Place(tmp_path)
    if database == "postgres":
        place = replace(place, variables={"OUTFITTER_DATABASE": request.getfixturevalue("postgres_url")})
    async with serve_http(Script("x")) as served:
        place.write_catalog(served.url)
        async with endpoint(place, "a", *(["--files"] if database == "postgres" else [])) as client:
            assert "x_echo" in [tool.name for tool in (await client.list_tools()).tools], "there is no registry yet"
        async with place.up("--open") as up:
            assert (await up.api("POST", "/agents", NEW))[0] == 201
            async with endpoint(place, "new") as client:
                assert "hi" in str((await client.call_tool("x_echo", {"text": "hi"})).content)
            await up.stop()
        async with endpoint(place, "new") as client:  # now nobody else has the database open
            assert "hi" in str((await client.call_tool("x_echo", {"text": "hi"})).content)
        lost = place.command("gateway", "--stdio", "--agent", "new", "--files")
        assert (lost.returncode, "no agent 'new'" in lost.stderr, lost.stdout) == (4, True, "")


@pytest.mark.promise("GW-STDIO-REGISTRY")
async def test_its_calls_are_recorded_and_leave_spans(tmp_path: Path) -> None:
    async with receiver() as collector, serve_http(Script("x")) as served:
        place = Place(tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
        place.write_catalog(served.url)
        async with endpoint(place, "a") as client:
            await client.call_tool("x_echo", {"text": "hi"})
        await collector.having(1)
    with closing(sqlite3.connect(place.state / "audit.sqlite")) as audit:
        assert audit.execute("SELECT agent, tool, outcome FROM calls").fetchall() == [("a", "echo", "done")]
