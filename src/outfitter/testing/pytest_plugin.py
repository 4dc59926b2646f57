"""How does a pytest suite use cassettes? A mark names one, a fixture gives the server that replays it.

    @pytest.mark.mcp_cassette("tokyo", server=MCPServer.stdio("time", "mcp-server-time"))
    def test_it_is_later_in_tokyo(mcp_cassette): ...

The file is ``cassettes/tokyo.jsonl`` beside the test. Loaded by every pytest of an environment that has outfitter, so
nothing heavy is imported before the fixture is used. What a stand-in is made of is ``stand_ins``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from outfitter.catalog import MCPServer

_MARK = "mcp_cassette"
_MODES = ("once", "none", "all")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer ``--mcp-record``."""
    told = (
        "When MCP cassettes are recorded: 'once' where the file is missing (the default), 'none' never (the default "
        "where the variable CI is set), 'all' every time anew."
    )
    parser.getgroup("mcp", "MCP cassettes").addoption("--mcp-record", choices=_MODES, default=None, help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    line = f"{_MARK}(name, server=None): replay cassettes/NAME.jsonl; server is the MCPServer it is recorded from"
    config.addinivalue_line("markers", line)


@pytest.fixture
def mcp_cassette(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MCPServer]:
    """The server of the test's mark: replayed from its cassette, or recorded into it. A missed call fails the test."""
    file, server = _read_mark(request)
    mode = request.config.getoption("--mcp-record") or ("none" if os.environ.get("CI") else "once")
    if mode == "all" or (mode == "once" and not file.exists()):
        yield _recorded(file, server)
        return
    if not file.exists():
        pytest.fail(f"there is no cassette {file}, and --mcp-record={mode} records none", pytrace=False)
    from outfitter.testing import replayed_server

    report = tmp_path / "mcp-cassette.jsonl"
    yield replayed_server(file, server, report=report)
    _fail_when_missed(file, report)


def _read_mark(request: pytest.FixtureRequest) -> tuple[Path, MCPServer | None]:
    marker = request.node.get_closest_marker(_MARK)
    if marker is None:
        raise pytest.UsageError(f"the fixture needs a mark: @pytest.mark.{_MARK}('name')")
    name, server = _arguments(*marker.args, **marker.kwargs)
    inner = PurePosixPath(name)
    if inner.is_absolute() or not inner.name or ".." in inner.parts:
        raise pytest.UsageError(f"the name of a cassette stays in its folder: {name!r}")
    return request.path.parent / "cassettes" / f"{name}.jsonl", server


def _arguments(name: str, server: MCPServer | None = None) -> tuple[str, MCPServer | None]:
    return name, server


def _recorded(file: Path, server: MCPServer | None) -> MCPServer:
    if server is None:
        told = f"there is no cassette {file}, and the mark names no server to record: server=MCPServer.stdio(…)"
        pytest.fail(told, pytrace=False)
    from outfitter.testing import recorded_server

    file.unlink(missing_ok=True)  # every connection of the test adds to it
    return recorded_server(server, file)


def _fail_when_missed(file: Path, report: Path) -> None:
    import json

    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    missed = [str(event["request"]) for event in events if event["event"] == "missed"]
    if missed:
        told = "\n  ".join([f"{file} has no answer to:", *missed])
        pytest.fail(f"{told}\nrecord it anew with --mcp-record=all", pytrace=False)
