"""An endpoint on stdin and stdout: the same agent, the same tools, for clients that only start commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from outfitter.catalog import MCPServer, StdioTransport
from outfitter.testing import Script, stdio_server
from outfitter.upstream import Era, Message, Pool
from tests.upstream.stage import QUICK, Answering, armed

pytestmark = pytest.mark.anyio
OUTFITTER = str(Path(sys.executable).parent / "outfitter")


def catalog_with(folder: Path, *servers: MCPServer) -> list[str]:
    """The arguments that start the endpoint of an agent with these servers."""
    (folder / "catalog" / "agents").mkdir(parents=True)
    described: Message = {}
    for server in servers:
        assert isinstance(server.transport, StdioTransport)
        described[server.name] = {"command": server.transport.command, "args": list(server.transport.args)}
    agent: Message = {"name": "a", "mcpServers": described}
    (folder / "catalog" / "agents" / "a.json").write_text(json.dumps(agent), encoding="utf-8")
    return ["--catalog", str(folder / "catalog"), "gateway", "--stdio", "--agent", "a"]


@pytest.mark.promise("GW-STDIO")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdk_speaks_to_it_in_either_era(tmp_path: Path, mode: str) -> None:
    arguments = catalog_with(tmp_path, stdio_server(Script("x")))
    environment = {**os.environ, "OUTFITTER_STATE": str(tmp_path / "state")}
    started = StdioServerParameters(command=OUTFITTER, args=arguments, env=environment)
    async with Client(stdio_client(started), mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "x_echo" in names
        result = await client.call_tool("x_echo", {"text": "hi"})
        assert "hi" in str(result.content)
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")


@pytest.mark.promise("GW-STDIO")
@pytest.mark.parametrize("era", [Era.LEGACY, Era.MODERN])
async def test_questions_of_a_server_reach_the_client_through_the_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: Era
) -> None:
    monkeypatch.setenv("OUTFITTER_STATE", str(tmp_path / "state"))
    arguments = catalog_with(tmp_path, stdio_server(Script("x", eras=("legacy",))))
    peer = Answering([])
    server = armed(MCPServer.stdio("gateway", OUTFITTER, arguments, env={"OUTFITTER_STATE": str(tmp_path / "s")}))
    async with Pool(patience=QUICK) as pool:
        connection = pool.connect(server, peer=peer, prefers=era)
        result = await connection.use(lambda link: link.call_tool("x_ask", {"what": "elicitation"}))
        assert "yes" in str(result)
        assert connection.era is era
    assert peer.asked == ["elicitation/create"]


@pytest.mark.promise("GW-STDIO")
def test_stdout_carries_messages_and_nothing_else(tmp_path: Path) -> None:
    arguments = catalog_with(tmp_path, stdio_server(Script("x")))
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    said = [
        "this is not JSON",
        json.dumps([{"jsonrpc": "2.0", "id": 9, "method": "ping"}]),
        json.dumps({"jsonrpc": "2.0", "id": 8, "method": "tools/list"}),
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
    ]
    done = subprocess.run(
        [OUTFITTER, *arguments],
        input="\n".join(said) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "OUTFITTER_STATE": str(tmp_path / "state")},
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    codes = {answer.get("error", {}).get("code") for answer in answers}
    assert codes == {-32700, -32600, None}
    assert next(one for one in answers if one.get("id") == 1)["result"]["serverInfo"]["name"] == "outfitter"


def test_an_agent_that_does_not_exist_is_a_clear_error(tmp_path: Path) -> None:
    arguments = catalog_with(tmp_path, stdio_server(Script("x")))
    done = subprocess.run(
        [OUTFITTER, *arguments[:-1], "nobody"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 4
    assert done.stdout == ""
    assert "nobody" in done.stderr
