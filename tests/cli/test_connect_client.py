"""Pointing other programs at an endpoint: their own format, a reference in place of the token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


@pytest.mark.promise("CONNECT-CLIENT")
@pytest.mark.parametrize(
    ("client", "root"), [("claude", "mcpServers"), ("vscode", "servers"), ("cursor", "mcpServers")]
)
def test_the_file_of_a_client_points_at_the_endpoint(client: str, root: str, terminal: Terminal) -> None:
    terminal.run("init", "--demo")
    shown = terminal.run("connect-client", client, "--agent", "tester")
    server = shown.json()[root]["outfitter-tester"]
    assert server["url"] == "http://127.0.0.1:8700/mcp/tester"
    assert "outfitter_token" in server["headers"]["Authorization"].lower()


@pytest.mark.promise("CONNECT-CLIENT")
def test_what_the_file_held_is_kept(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run("init", "--demo")
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"mine": {"command": "mine"}}}))
    terminal.run("connect-client", "claude", "--agent", "tester", "-o", str(file))
    assert set(json.loads(file.read_text())["mcpServers"]) == {"mine", "outfitter-tester"}


def test_an_unknown_agent_or_server_is_a_clear_error(terminal: Terminal) -> None:
    terminal.run("init", "--demo")
    agent = terminal.run("connect-client", "claude", "--agent", "teste")
    assert (agent.code, "tester" in agent.err) == (4, True)
    server = terminal.run("connect-client", "claude", "--agent", "tester", "--server", "nope")
    assert (server.code, "no server" in server.err) == (4, True)
