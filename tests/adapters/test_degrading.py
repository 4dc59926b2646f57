"""Agents that go on while servers are away: the model is told what to do instead, and does its work with the others.

The real SDKs, a scripted model, and servers that are programs of their own and are killed in the middle.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from outfitter.adapters import GatewayRoute
from outfitter.catalog import MCPServer
from outfitter.testing import ModelSays, Script, model_calls
from outfitter.tools import Tool
from tests.adapters.candidates import CLAUDE, COPILOT, RESPONSES
from tests.adapters.kit import Candidate, Played, play, prompt_of, scripted
from tests.gateway.kit import agent, gateway

FALLBACK = "use the `gh` CLI"


@dataclass(frozen=True, slots=True)
class Remote:
    """A server on HTTP that is a program of its own."""

    process: subprocess.Popen[str]
    server: MCPServer

    def killer(self) -> Tool[Any, Any]:
        """A tool that ends it."""

        def kill() -> str:
            """End the server."""
            self.process.kill()
            self.process.wait(30)
            return "it has ended"

        return Tool.wrap(kill)


@contextmanager
def remote(name: str) -> Generator[Remote]:
    """A server that lives until it is killed, or until the block ends."""
    command = [sys.executable, "-m", "outfitter.testing.http_server", "--script", Script(name).to_json()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
            yield Remote(process, MCPServer.http(name, url, fallback=FALLBACK))
        finally:
            process.kill()


def told(played: Played[Any]) -> str:
    """Everything that the model was told after the server was killed."""
    return played.requests[-1].text.rpartition("it has ended")[2]


async def killed(candidate: Candidate, names: tuple[str, str], **options: Any) -> Played[Any]:  # noqa: ANN401 - options of any adapter
    """What comes of work in whose middle one of two servers is killed; ``names`` are of its tool and of another's."""
    own, other = names
    turns = (
        model_calls(own, {"text": "first"}),
        model_calls(candidate.shown("kill")),
        model_calls(own, {"text": "second"}),
        model_calls(other, {"a": 20, "b": 22}),
        ModelSays("the work is done"),
    )
    helper = scripted("other", "add")
    with remote("gh") as gone:
        prompt = prompt_of(gone.killer(), mcps=[gone.server, helper])
        if options.get("route") != "gateway":
            return await play(candidate, prompt, *turns, **options)
        async with gateway(agent("a", gone.server, helper)) as running:
            return await play(candidate, prompt, *turns, **options, gateway=GatewayRoute(running.url("a")))


@pytest.mark.anyio
@pytest.mark.promise("DEGRADE-AGENT")
@pytest.mark.parametrize(
    ("candidate", "route", "names"),
    [
        (RESPONSES, "", ("gh_echo", "other_add")),
        (CLAUDE, "bridge", ("mcp__wink__gh_echo", "mcp__wink__other_add")),
        (CLAUDE, "native", ("mcp__gh__echo", "mcp__other__add")),
        (CLAUDE, "gateway", ("mcp__gh__echo", "mcp__other__add")),
        (COPILOT, "native", ("gh-echo", "other-add")),
        (COPILOT, "gateway", ("gh-echo", "other-add")),
    ],
    ids=lambda value: getattr(value, "name", value if isinstance(value, str) else ""),
)
async def test_an_agent_completes_its_work_with_one_server_killed(
    candidate: Candidate, route: str, names: tuple[str, str]
) -> None:
    played = await killed(candidate, names, **({"route": route} if route else {}))
    assert played.response.is_complete
    assert played.response.text == "the work is done"
    assert "The MCP server 'gh' is not available: " in told(played)
    assert f"Instead: {FALLBACK}." in told(played)
    assert [(event.name, event.result.success) for event in played.events] == [
        ("gh_echo", True),
        ("kill", True),
        ("gh_echo", False),
        ("other_add", True),
    ]
    assert played.events[2].result.value is None


@pytest.mark.anyio
@pytest.mark.promise("DEGRADE-ALL")
@pytest.mark.parametrize("candidate", [CLAUDE, COPILOT], ids=lambda one: one.name)
@pytest.mark.parametrize("route", ["native", "gateway"])
async def test_with_every_server_down_an_agent_still_completes_its_work(candidate: Candidate, route: str) -> None:
    def note(text: str) -> str:
        """Keep a note."""
        return f"noted: {text}"

    dead = MCPServer.http("gh", "http://127.0.0.1:9/mcp", fallback=FALLBACK)
    turns = (model_calls(candidate.shown("note"), {"text": "alone"}), ModelSays("the work is done"))
    prompt = prompt_of(Tool.wrap(note), mcps=[dead])
    async with gateway(agent("a", dead)) as running:
        more: dict[str, Any] = {"gateway": GatewayRoute(running.url("a"))} if route == "gateway" else {}
        played = await play(candidate, prompt, *turns, route=route, **more)
    assert played.response.text == "the work is done"
    assert [(event.name, event.result.message) for event in played.events] == [("note", "noted: alone")]
    if route == "native":
        assert f"Not available now: gh. Instead of 'gh': {FALLBACK}." in played.requests[0].text
