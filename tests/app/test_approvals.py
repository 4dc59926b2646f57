"""A call that a rule asks about, through a real gateway: answered by a command in another process, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place, Up
from tests.gateway.kit import raw

pytestmark = pytest.mark.anyio
ASK = {"tools": ["echo"], "effect": "ask", "reason": "it talks"}


def write_agent(place: Place, url: str) -> None:
    place.write("mcp-servers/x.json", {"name": "x", "url": url})
    place.write("agents/a.json", {"name": "a", "mcpServers": {"x": {"ref": "x"}}, "rules": [ASK]})


async def call(up: Up, era: str, text: str) -> Any:  # noqa: ANN401 - JSON
    """What comes of a call."""
    async with raw(f"{up.url}/mcp/a/x") as client:
        if era == "legacy":
            await client.handshake()
        ask = client.legacy if era == "legacy" else client.modern
        return (await ask("tools/call", {"name": "echo", "arguments": {"text": text}}))[1]["result"]


async def command(place: Place, *args: str) -> Any:  # noqa: ANN401 - JSON
    """What a command says."""
    said = await anyio.to_thread.run_sync(lambda: place.command(*args, "--json"))
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


async def waiting(place: Place, text: str) -> str:
    """The id of the call with this text, as soon as it waits."""
    with anyio.fail_after(90):
        while True:
            found = [one for one in await command(place, "approvals", "list") if one["arguments"] == {"text": text}]
            if found and found[0]["waits_until"]:
                return found[0]["id"]


@pytest.mark.promise("APPROVAL-WAIT")
@pytest.mark.promise("APPROVAL-CLI")
async def test_a_call_at_a_gateway_of_two_workers_is_answered_from_the_command_line(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with serve_http(Script("x")) as served:
        write_agent(place, served.url)
        async with place.up("--files", "--open", "--workers", "2") as up:
            for era, what in (("modern", "approve"), ("legacy", "deny")):
                answers: list[Any] = []
                async with anyio.create_task_group() as group:

                    async def ask(era: str = era, answers: list[Any] = answers) -> None:
                        answers.append(await call(up, era, era))

                    group.start_soon(ask)
                    await command(place, "approvals", what, await waiting(place, era))
                assert answers[0].get("isError", False) is (what == "deny")
            assert served.ledger.requests["tools/call"] == 1
            explained = await command(place, "explain", "a")
            assert explained["servers"][0]["rules"][0]["says"] == "ask a person: it talks"
