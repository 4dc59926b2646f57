"""Tools that appear later under an exclude rule, through a real gateway: hidden, refused, approved while it runs."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place, Up
from tests.gateway.kit import raw

pytestmark = pytest.mark.anyio
LATE = "appeared"
_PATIENCE = 90.0


def write_agents(place: Place, url: str) -> None:
    place.write("mcp-servers/x.json", {"name": "x", "url": url})
    uses: dict[str, dict[str, Any]] = {
        "tester": {"ref": "x", "tools": {"exclude": ["sleep"]}},
        "lead": {"ref": "x"},
        "writer": {"ref": "x", "tools": {"include": ["echo", "touch", LATE], "exclude": ["sleep"]}},
    }
    for name, use in uses.items():
        place.write(f"agents/{name}.json", {"name": name, "mcpServers": {"x": use}})


async def shown(up: Up, agent: str) -> set[str]:
    """The tools that an agent sees now, under their own names."""
    async with raw(f"{up.url}/mcp/{agent}/x") as client:
        _, answer = await client.modern("tools/list")
    return {tool["name"] for tool in answer["result"]["tools"]}


async def call(up: Up, agent: str, tool: str, **arguments: object) -> Any:  # noqa: ANN401 - JSON
    """What comes of a call."""
    async with raw(f"{up.url}/mcp/{agent}/x") as client:
        _, answer = await client.modern("tools/call", {"name": tool, "arguments": arguments})
    return answer


async def command(place: Place, *args: str) -> str:
    """What a command says; servers of the test answer meanwhile."""
    said = await anyio.to_thread.run_sync(lambda: place.command(*args))
    assert said.returncode == 0, said.stderr
    return said.stdout


async def until_shown(up: Up, agent: str, is_right: Callable[[set[str]], bool]) -> set[str]:
    """The tools of an agent as soon as they are right."""
    with anyio.fail_after(_PATIENCE):
        while not is_right(found := await shown(up, agent)):  # noqa: ASYNC110 - another process makes it so
            await anyio.sleep(0.05)
    return found


@pytest.mark.promise("SQUAD-EXCLUDE-LATER")
async def test_a_tool_that_appears_later_under_an_exclude_rule_is_hidden_until_it_is_approved(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    async with serve_http(Script("x")) as served:
        write_agents(place, served.url)
        async with place.up("--files", "--open") as up:
            first = {agent: await shown(up, agent) for agent in ("tester", "lead", "writer")}
            assert "sleep" not in first["tester"]
            assert "echo" in first["tester"]

            await call(up, "lead", "touch", list="tools")
            assert LATE in await until_shown(up, "lead", lambda tools: LATE in tools), "no exclude rule holds it back"
            assert LATE in await until_shown(up, "writer", lambda tools: LATE in tools), "an include list names it"
            assert await shown(up, "tester") == first["tester"]
            refused = (await call(up, "tester", LATE))["result"]
            assert refused["_meta"]["outfitter/outcome"]["code"] == "pin_mismatch"
            assert "it appeared later under an exclude rule" in refused["content"][0]["text"]

            said = await command(place, "why-not", "tester", LATE)
            assert "appeared later under an exclude rule, waits for approval" in said
            assert f"outfitter squad approve-tools x {LATE}" in said
            assert "waits for approval" in await command(place, "explain", "tester")
            assert f"'{LATE}' appeared later and is hidden from agent 'tester'" in await command(place, "status")
            files = [file for file in (place.state / "pins").rglob("*") if file.is_file()]
            assert files
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

            await command(place, "--catalog", "outfitter", "squad", "approve-tools", "x", LATE)
            assert LATE in await until_shown(up, "tester", lambda tools: LATE in tools)
            assert "result" in await call(up, "tester", LATE, text="hi")
            assert "waits" not in await command(place, "explain", "tester")


@pytest.mark.promise("SQUAD-EXCLUDE-LATER")
async def test_what_was_seen_is_remembered_over_a_restart_and_what_cannot_be_read_lets_nothing_in(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    async with serve_http(Script("x")) as served:
        write_agents(place, served.url)
        async with place.up("--files", "--open") as up:
            before = await shown(up, "tester")
            await call(up, "lead", "touch", list="tools")
            await up.stop()
        async with place.up("--files", "--open") as up:
            assert await shown(up, "tester") == before
            assert LATE in await shown(up, "lead")
            await up.stop()
        (file,) = (place.state / "pins").rglob("*.db")
        file.write_text("this is no database, and long enough to be looked at as one " * 20)
        async with place.up("--files", "--open") as up:
            assert await shown(up, "tester") == set()
            assert await shown(up, "writer") == set()
            assert "the tools of server 'x' are hidden" in up.log()
            assert str(file) in up.log()
