"""Results kept aside by a real gateway: every worker finds them, and the command line looks after them."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place
from tests.gateway.kit import raw

pytestmark = pytest.mark.anyio
READER = "read_kept_result"


async def _command(place: Place, *args: str) -> str:
    said = await anyio.to_thread.run_sync(lambda: place.command(*args))
    assert said.returncode == 0, said.stderr
    return said.stdout


@pytest.mark.promise("LARGE-RESULTS-BOUND")
async def test_every_worker_finds_what_one_has_kept_and_commands_list_show_and_forget_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with serve_http(Script("x")) as served:
        place.write("mcp-servers/x.json", {"name": "x", "url": served.url})
        place.write("agents/a.json", {"name": "a", "result_limit": 2048, "mcpServers": {"x": {"ref": "x"}}})
        async with place.up("--open", "--files", "--workers", "2") as up:
            async with raw(f"{up.url}/mcp/a/x") as http:
                _, made = await http.modern("tools/call", {"name": "big", "arguments": {"size": 9000}})
            handle = made["result"]["_meta"]["outfitter/kept"]["uri"]
            for _ in range(6):  # another connection each time: the system chooses the worker
                async with raw(f"{up.url}/mcp/a/x") as http:
                    asked = {"name": READER, "arguments": {"handle": handle, "offset": 8998}}
                    _, read = await http.modern("tools/call", asked)
                    assert "bytes 8998 to 9000 of 9000" in read["result"]["content"][0]["text"]
            (listed,) = json.loads(await _command(place, "results", "list", "--json"))
            assert (listed["agent"], listed["tool"], listed["size"]) == ("a", "big", 9000)
            assert await _command(place, "results", "show", listed["id"]) == "x" * 9000
            assert await _command(place, "results", "clear") == "Removed 1 kept results.\n"
            async with raw(f"{up.url}/mcp/a/x") as http:
                _, gone = await http.modern("tools/call", {"name": READER, "arguments": {"handle": handle}})
            assert gone["result"]["isError"] is True
    assert place.command("results", "show", listed["id"]).returncode == 4
