"""What tool definitions cost, on the command line: measured at the servers, then remembered."""

from __future__ import annotations

import pytest

from outfitter.testing import Script, stdio_server
from tests.cli.terminal import Terminal


@pytest.mark.promise("TOKEN-METER")
def test_the_heaviest_tools_come_first_and_explain_remembers_them(terminal: Terminal) -> None:
    server = stdio_server(Script())
    terminal.write("outfitter/mcp-servers/one.json", {"command": server.command, "args": list(server.args)})
    searching: dict[str, object] = {
        "mcpServers": {"one": {"ref": "one"}},
        "tool_search": {"mode": "auto", "threshold": 100},
    }
    terminal.write("outfitter/agents/free.json", {"mcpServers": {"one": {"ref": "one", "tools": ["echo", "add"]}}})
    terminal.write("outfitter/agents/many.json", searching)
    assert "tool_tokens" not in terminal.run("explain", "free", "--json").json(), "nothing was seen yet"
    told = terminal.run("tools", "free", "--tokens", "--json")
    assert told.code == 0, told.err
    weights = told.json()
    tokens = [tool["tokens"] for tool in weights["tools"]]
    assert sorted(tokens, reverse=True) == tokens
    assert {tool["shown"] for tool in weights["tools"]} == {"one_echo", "one_add"}
    assert (weights["tokens"], weights["searched"]) == (sum(tokens), False)
    assert terminal.run("explain", "free", "--json").json()["tool_tokens"] == weights
    many = terminal.run("explain", "many").out
    assert "the model reads" in many
    assert "it searches them" in many
    assert "TOKENS" in terminal.run("tools", "free", "--tokens").out
