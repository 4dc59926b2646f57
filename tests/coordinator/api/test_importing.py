"""Another program's file over the API: what it would add is shown, nothing is stored; and a server that is tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from outfitter.coordinator import Probed
from tests.coordinator.api.kit import Served, service

pytestmark = pytest.mark.anyio
SECRET = "ghp_" + "a1B2c3D4" * 4 + "wxyz"
CLAUDE = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "files-server", "/data dir"]},
        "code": {"type": "http", "url": "https://tools.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
    }
}
CODEX = '[mcp_servers.files]\ncommand = "npx"\nargs = ["-y", "files-server"]\n'


@pytest.mark.promise("P14")
async def test_a_file_is_shown_with_whole_commands_and_references_and_nothing_is_stored(served: Served) -> None:
    viewer = await served.as_role("viewer")
    reply = await viewer.post("/import", {"text": json.dumps(CLAUDE)})
    assert reply.status == 200, reply.content
    found = {one["id"]: one for one in reply.json["items"]}
    assert reply.json["client"] == "claude-code"
    assert found["files"]["target"] == "npx -y files-server '/data dir'"
    assert found["code"]["notes"]
    assert SECRET.encode() not in reply.content
    assert [one["standing"] for one in found.values()] == ["new", "new"]
    assert (await served.get("/mcp-servers")).json["items"] == []
    await served.must("/mcp-servers", found["code"]["document"])
    await served.must("/mcp-servers", {"id": "files", "url": "https://other.example/mcp"})
    again = (await viewer.post("/import", {"text": json.dumps(CLAUDE)})).json["items"]
    assert {one["id"]: (one["standing"], one["version"]) for one in again} == {
        "files": ("differs", 1),
        "code": ("same", 1),
    }


async def test_whose_file_it_is_is_guessed_from_pasted_text_and_what_cannot_be_read_is_said_with_its_line(
    served: Served,
) -> None:
    assert (await served.post("/import", {"text": CODEX})).json["client"] == "codex"
    assert (await served.post("/import", {"text": CODEX, "filename": "config.toml"})).json["client"] == "codex"
    vscode = {"servers": {"one": {"type": "http", "url": "https://tools.example/mcp"}}}
    assert (await served.post("/import", {"text": json.dumps(vscode)})).json["client"] == "vscode"
    broken = await served.post("/import", {"text": '{\n  "mcpServers": {\n    "a": {"command": }\n  }\n}'})
    assert (broken.status, broken.json["line"]) == (422, 3)
    for text, said in (("", "there is nothing in it"), ('{"a": 1}', "cannot tell"), ("{" * 100_000, "deep")):
        refused = await served.post("/import", {"text": text})
        assert (refused.status, refused.code) == (422, "invalid_document"), text[:20]
        assert said in refused.json["detail"]
    assert (await served.post("/import", {"text": " " * 2**20})).status == 413


async def test_a_server_is_tried_by_those_who_may_change_it_where_a_gateway_is(tmp_path: Path) -> None:
    async def probe(server: str) -> Probed:
        return Probed("ready", "modern", "2026-07-28", [{"name": f"{server}_tool", "inputSchema": {}}], 1.5)

    async with service(tmp_path, probe=probe) as served:
        await served.must("/mcp-servers", {"id": "x", "url": "https://tools.example/mcp"})
        assert (await (await served.as_role("viewer")).post("/mcp-servers/x/probe")).status == 403
        assert (await served.post("/mcp-servers/y/probe")).status == 404
        assert (await served.post("/mcp-servers/x/probe")).json["tools"][0]["name"] == "x_tool"


async def test_without_a_gateway_nobody_tries_a_server(served: Served) -> None:
    await served.must("/mcp-servers", {"id": "x", "url": "https://tools.example/mcp"})
    assert "nobody here connects" in (await served.post("/mcp-servers/x/probe")).json["error"]
