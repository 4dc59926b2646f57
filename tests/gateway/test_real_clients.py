"""Real servers behind one endpoint, listed and called by the official client in both eras."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from mcp import Client

from outfitter.catalog import MCPServer
from tests.gateway.kit import agent, gateway
from tests.upstream.real import PATIENT, npm_server, python_server, sqlite_server

pytestmark = pytest.mark.anyio

CALLS: dict[str, tuple[dict[str, object], str]] = {
    "git_git_status": ({"repo_path": "{folder}/repo"}, "No commits yet"),
    "time_get_current_time": ({"timezone": "UTC"}, "UTC"),
    "sqlite_list_tables": ({}, "["),
    "everything_echo": ({"message": "hi"}, "hi"),
    "filesystem_list_allowed_directories": ({}, "{folder}"),
    "memory_read_graph": ({}, "entities"),
    "sequential-thinking_sequentialthinking": (
        {"thought": "t", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
        "thoughtNumber",
    ),
}


def every_server(folder: Path) -> list[MCPServer]:
    """All real servers, each with a place of its own."""
    repository = folder / "repo"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    return [
        python_server("git", "--repository", str(repository)),
        python_server("time", "--local-timezone", "UTC"),
        python_server("fetch"),
        sqlite_server(folder / "data.db"),
        npm_server("everything"),
        npm_server("filesystem", str(folder)),
        npm_server("memory", env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}),
        npm_server("sequential-thinking"),
    ]


@pytest.mark.promise("GW-REAL")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_every_real_server_is_listed_and_called_behind_one_endpoint(tmp_path: Path, mode: str) -> None:
    servers = every_server(tmp_path)
    async with gateway(agent("a", *servers)) as running:
        async with Client(running.url("a"), mode=mode, read_timeout_seconds=PATIENT.call) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            for server in servers:
                assert any(name.startswith(f"{server.name}_") for name in listed), (server.name, listed)
            for name, (arguments, expected) in CALLS.items():
                given = {key: _fill(value, tmp_path) for key, value in arguments.items()}
                result = await client.call_tool(name, given)
                assert not result.is_error, (name, result)
                assert expected.format(folder=tmp_path) in str(result.content), (name, result)
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        # Nothing was started twice: one process for each server.
        assert len(running.desk.exchange.lines()) == len(servers)


def _fill(value: object, folder: Path) -> object:
    return value.format(folder=folder) if isinstance(value, str) else value
