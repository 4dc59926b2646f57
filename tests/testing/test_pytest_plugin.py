"""The pytest plugin: a suite of its own, run as a person runs it, records once and then replays."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

CASSETTE = "cassettes/tokyo.jsonl"
SUITE = """
import json
import os
import subprocess

import pytest

from outfitter.catalog import MCPServer
from outfitter.testing import stdio_server

LIVE = stdio_server() if os.environ.get("HAS_LIVE") else MCPServer.stdio("gone", "/nowhere/at/all")


def ask(server, text):
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "suite", "version": "1"}}
    sent = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": text}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\\n" for message in sent)
    done = subprocess.run([server.command, *server.args], input=lines, capture_output=True, text=True)
    (answer,) = [said for said in map(json.loads, done.stdout.splitlines()) if said.get("id") == 2]
    return answer["result"]["structuredContent"]


@pytest.mark.mcp_cassette("tokyo", server=LIVE)
def test_the_echo_answers(mcp_cassette):
    assert ask(mcp_cassette, "hello") == {"text": "hello"}
"""
MORE = """
from contextlib import suppress

import pytest
from test_suite import ask


@pytest.mark.mcp_cassette("tokyo")
def test_that_swallows_every_error(mcp_cassette):
    with suppress(KeyError):
        ask(mcp_cassette, "something else")


@pytest.mark.mcp_cassette("nowhere")
def test_that_was_never_recorded(mcp_cassette):
    ask(mcp_cassette, "anything")
"""


def run(folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the suite in a folder as its owner would, with none of this project's settings."""
    kept = {name: value for name, value in os.environ.items() if name not in {"CI", "PYTEST_ADDOPTS"}}
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "outfitter.testing.pytest_plugin"}
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", *args]
    return subprocess.run(
        command,
        cwd=folder,
        env={**kept, **alone, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.promise("CASSETTE-PYTEST")
def test_a_suite_records_once_then_needs_no_server_and_can_be_recorded_anew(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    first = run(tmp_path, HAS_LIVE="1")
    assert first.returncode == 0, first.stdout
    recorded = (tmp_path / CASSETTE).read_bytes()
    (tmp_path / "test_more.py").write_text(MORE, encoding="utf-8")
    again = run(tmp_path, CI="true")
    assert (tmp_path / CASSETTE).read_bytes() == recorded
    assert "2 passed, 2 errors" in again.stdout
    assert 'has no answer to:\n  tools/call echo {"text": "something else"}' in again.stdout.replace("\nE ", "\n")
    assert "nowhere.jsonl, and --mcp-record=none records none" in again.stdout
    anew = run(tmp_path, "--mcp-record=all", "test_suite.py", HAS_LIVE="1")
    assert anew.returncode == 0, anew.stdout
    assert (tmp_path / CASSETTE).stat().st_size > 0


def test_every_pytest_of_an_environment_finds_the_plugin() -> None:
    (found,) = entry_points(group="pytest11", name="outfitter")
    assert found.value == "outfitter.testing.pytest_plugin"


def test_the_plugin_loads_nothing_heavy() -> None:
    code = "import sys, pytest; before = set(sys.modules); import outfitter.testing.pytest_plugin\n"
    code += (
        "print(sorted({n.partition('.')[0] for n in set(sys.modules) - before} & {'anyio','aiohttp','msgspec','mcp'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
