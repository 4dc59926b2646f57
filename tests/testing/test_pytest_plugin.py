"""The pytest plugin: a suite of its own, run as a person runs it, records once and then replays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASSETTE = "cassettes/tokyo.jsonl"
SUITE = """
import asyncio
import os
import sys

import pytest
from mcp import Client, StdioServerParameters

from outfitter.catalog import MCPServer
from outfitter.testing import stdio_server

LIVE = stdio_server() if os.environ.get("HAS_LIVE") else MCPServer.stdio("gone", "/nowhere/at/all")


async def ask(server, text):
    target = StdioServerParameters(command=server.command, args=list(server.args), env=dict(os.environ))
    async with Client(target, cache=None, mode="legacy") as client:
        return (await client.call_tool("echo", {"text": text})).structured_content


@pytest.mark.mcp_cassette("tokyo", server=LIVE)
def test_the_echo_answers(mcp_cassette):
    assert asyncio.run(ask(mcp_cassette, os.environ.get("SAY", "hello"))) == {"text": "hello"}
"""
SWALLOWS = """
import asyncio
from contextlib import suppress

import pytest
from test_suite import ask


@pytest.mark.mcp_cassette("tokyo")
def test_that_swallows_every_error(mcp_cassette):
    with suppress(Exception):
        asyncio.run(ask(mcp_cassette, "something else"))
"""


def run(folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the suite in a folder as its owner would, with none of this project's settings."""
    kept = {name: value for name, value in os.environ.items() if name not in {"CI", "PYTEST_ADDOPTS"}}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--strict-markers", *args]
    return subprocess.run(
        command, cwd=folder, env={**kept, **variables}, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    return tmp_path


@pytest.mark.promise("CASSETTE-PYTEST")
def test_a_suite_records_once_and_then_needs_no_server(suite: Path) -> None:
    missing = run(suite, CI="true")
    assert missing.returncode == 1
    assert "there is no cassette" in missing.stdout
    first = run(suite, HAS_LIVE="1")
    assert first.returncode == 0, first.stdout
    recorded = (suite / CASSETTE).read_bytes()
    (suite / "test_swallows.py").write_text(SWALLOWS, encoding="utf-8")
    again = run(suite, CI="true")
    assert (suite / CASSETTE).read_bytes() == recorded
    assert "2 passed, 1 error" in again.stdout
    assert 'tools/call echo {"text": "something else"}' in again.stdout


@pytest.mark.promise("CASSETTE-PYTEST")
def test_all_records_anew(suite: Path) -> None:
    (suite / "cassettes").mkdir()
    (suite / CASSETTE).write_text("old", encoding="utf-8")
    done = run(suite, "--mcp-record=all", HAS_LIVE="1")
    assert done.returncode == 0, done.stdout
    assert "old" not in (suite / CASSETTE).read_text(encoding="utf-8")


def test_the_plugin_loads_nothing_heavy() -> None:
    code = "import sys, pytest; before = set(sys.modules); import outfitter.testing.pytest_plugin\n"
    code += (
        "print(sorted({n.partition('.')[0] for n in set(sys.modules) - before} & {'anyio','aiohttp','msgspec','mcp'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
