"""Copilot with servers that it connects itself: natively, through a real gateway, and for one agent alone."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outfitter.adapters import CopilotAgent, GatewayRoute
from outfitter.catalog import MCPServer, ToolFilter
from outfitter.errors import Conflict, Invalid, McpConnectionError
from outfitter.policy import SequentialDependencyPolicy
from outfitter.testing import Crash, ModelSays, Script, ScriptedTool, When, model_calls, serve_http
from outfitter.tools import Tool
from tests.adapters.candidates import COPILOT
from tests.adapters.kit import MODEL_KEY, OPENING, Played, hidden, play, prompt_of, scripted
from tests.adapters.processes import Seen, started
from tests.gateway.kit import agent, gateway


def note(text: str) -> str:
    """Keep a note."""
    return f"noted: {text}"


def looker(found: list[Seen]) -> Tool[Any, Any]:
    """A tool that looks at every process below this one."""

    def look() -> str:
        """Look."""
        found.extend(started())
        return "seen"

    return Tool.wrap(look)


def called(played: Played[Any]) -> list[tuple[str, str, str | None, str]]:
    """Each call as its event tells it."""
    return [(event.name, event.adapter, event.mcp_server, event.result.code) for event in played.events]


def with_secret(server: MCPServer) -> MCPServer:
    """The same stdio server with a secret in its environment."""
    return MCPServer.stdio(server.name, server.command or "", server.args, env={"KEY": "canary-${KIT_TOKEN}"})


@pytest.mark.anyio
@pytest.mark.promise("COPILOT-NATIVE")
@pytest.mark.promise("COPILOT-CANARY")
async def test_native_servers_get_their_secrets_and_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIT_TOKEN", "canary-token")
    found: list[Seen] = []
    script = Script("remote", tools=tuple(tool for tool in Script().tools if tool.name in {"add", "echo", "headers"}))
    async with serve_http(script) as serving:
        headers = {"Authorization": "Bearer ${KIT_TOKEN}", "X-Tenant": "tenant-7"}
        remote = MCPServer.http("remote", serving.url, headers=headers, tools=ToolFilter(exclude=("ech*",)))
        old = MCPServer.sse("old", serving.sse_url, headers={"X-Tenant": "tenant-8"}, enabled_tools=["headers"])
        turns = (
            model_calls("remote-add", {"a": 1, "b": 2}),
            model_calls("old-headers"),
            model_calls("local-add", {"a": 2, "b": 2}),
            model_calls("look"),
            ModelSays("done"),
        )
        prompt = prompt_of(looker(found), mcps=[remote, old, with_secret(scripted("local", "add"))])
        played = await play(COPILOT, prompt, *turns, route="native")
    assert sorted(played.requests[0].tools) == ["local-add", "look", "old-headers", "remote-add", "remote-headers"]
    assert called(played) == [
        ("remote_add", "mcp:remote", "remote", ""),
        ("old_headers", "mcp:old", "old", ""),
        ("local_add", "mcp:local", "local", ""),
        ("look", "copilot", None, ""),
    ]
    assert all(event.duration > 0 for event in played.events)
    assert [call.call_id for call in played.response.tool_calls] == [event.call_id for event in played.events]
    assert "tenant-8" in played.requests[-1].answers[1]
    for request in played.requests:
        assert "canary" not in request.text
    assert not [seen.argv for seen in found if "canary" in seen.argv or MODEL_KEY in seen.argv]
    (server,) = (seen for seen in found if "outfitter.testing.stdio_server" in seen.argv)
    assert [name for name, value in server.environ.items() if "canary" in value] == ["KEY"]
    assert not [seen.argv for seen in found if seen.is_alive]
    assert "canary" not in repr(played.response) + repr(played.events)


@pytest.mark.anyio
@pytest.mark.promise("COPILOT-NATIVE")
async def test_policies_and_hooks_hold_for_servers_that_copilot_connects() -> None:
    def forbid(data: dict[str, Any], _: object) -> dict[str, str] | None:
        if data["toolArgs"].get("text") == "crash":
            raise RuntimeError("the hook is broken")
        is_odd = data["toolArgs"].get("text") == "odd"
        return {"permissionDecision": "deny", "permissionDecisionReason": "too odd"} if is_odd else None

    policy = SequentialDependencyPolicy({"add": {"note"}})
    server = scripted("demo", "add", "echo", faults=(Crash(When(method="tools/call", after=1)),))
    prompt = prompt_of(Tool.wrap(note), mcps=[server], policies=[policy])
    add = model_calls("demo-add", {"a": 1, "b": 2})
    turns = (
        add,
        model_calls("note", {"text": "ready"}),
        add,
        model_calls("demo-add", {"a": "one", "b": 2}),
        model_calls("demo-echo", {"text": "crash"}),
        model_calls("demo-echo", {"text": "odd"}),
        model_calls("demo-echo", {"text": "dies"}),
        ModelSays("done"),
    )
    played = await play(COPILOT, prompt, *turns, route="native", hooks={"on_pre_tool_use": forbid})
    denied, _, done, unfit, crashed, odd, _ = played.requests[-1].answers
    assert "policy" in denied
    assert "note" in denied
    assert '{"sum": 3}' in done
    assert "/a: expected" in unfit
    assert "the check before the call failed" in crashed
    assert "too odd" in odd
    assert [(event.name, event.decision, event.result.success) for event in played.events] == [
        ("demo_add", "deny", False),
        ("note", "allow", True),
        ("demo_add", "allow", True),
        ("demo_add", "unasked", False),
        ("demo_echo", "allow", False),
        ("demo_echo", "allow", False),
        ("demo_echo", "allow", False),
    ]
    assert [event.result.code for event in played.events][-3:] == ["denied", "denied", "upstream_lost"]


@pytest.mark.anyio
@pytest.mark.promise("COPILOT-GATEWAY")
@pytest.mark.promise("COPILOT-CANARY")
async def test_a_gateway_gives_copilot_the_servers_and_keeps_their_secrets(tmp_path: Path) -> None:
    found: list[Seen] = []
    async with serve_http(Script("demo")) as serving:
        real = MCPServer.http("demo", serving.url, headers={"X-Tenant": "canary-tenant"})
        chosen = agent("a", real, demo=ToolFilter(("add",)))
        async with gateway(chosen, tokens=tmp_path / "tokens.json") as running:
            assert running.tokens is not None
            token, _ = running.tokens.issue("a")
            options: dict[str, Any] = {"route": "gateway", "gateway": GatewayRoute(running.url("a"), token)}
            # The prompt's definition is a name here: its program does not even exist.
            prompt = prompt_of(looker(found), mcps=[MCPServer.stdio("demo", "no-such-program")])
            turns = (model_calls("demo-add", {"a": 1, "b": 2}), model_calls("look"), ModelSays("three"))
            played = await play(COPILOT, prompt, *turns, **options)
            turns = (model_calls("gateway-demo_add", {"a": 1, "b": 2}), ModelSays("three"))
            whole = await play(COPILOT, prompt_of(), *turns, **options)
    assert sorted(played.requests[0].tools) == ["demo-add", "look"]
    assert called(played) == [("demo_add", "mcp:demo", "demo", ""), ("look", "copilot", None, "")]
    assert called(whole) == [("gateway_demo_add", "mcp:gateway", "gateway", "")]
    for request in (*played.requests, *whole.requests):
        assert token not in request.text
        assert "canary" not in request.text
    assert found
    assert not [seen.argv for seen in found if token in seen.argv or "canary" in seen.argv + repr(seen.environ)]


@pytest.mark.anyio
@pytest.mark.promise("COPILOT-AGENTS")
async def test_an_agent_has_servers_of_its_own_that_only_it_sees() -> None:
    helper = CopilotAgent(
        "helper", "You calculate.", "Calculates.", [scripted("numbers", "add", "echo")], ToolFilter(("numbers-add",))
    )
    task = {"agent_type": "helper", "prompt": "1 + 2", "description": "Add", "name": "adding", "mode": "sync"}
    turns = (
        model_calls("task", task),
        model_calls("numbers-add", {"a": 1, "b": 2}),
        ModelSays("It is three."),
        ModelSays("three"),
    )
    prompt = prompt_of(Tool.wrap(note), mcps=[scripted("main", "echo")])
    played = await play(COPILOT, prompt, *turns, route="native", agents=[helper])
    first, second, third, last = (request.tools for request in played.requests)
    assert set(first) == set(last) == {"note", "main-echo", "task"}
    assert second == third == ("numbers-add",)
    assert called(played) == [("numbers_add", "mcp:numbers", "numbers", "")]
    assert (played.response.text, played.response.rounds) == ("three", 4)


# ── what cannot be done ──


@pytest.mark.anyio
async def test_names_that_copilot_would_cut_or_mix_up_are_refused_before_the_model_is_asked() -> None:
    long = "calculate_" + "really_" * 8 + "slowly"
    with pytest.raises(Invalid, match="more than 64 characters"):
        await play(COPILOT, prompt_of(mcps=[scripted("demo", ScriptedTool(long, kind="echo"))]), route="native")
    twins = [scripted("a", ScriptedTool("b-c", kind="echo")), scripted("a-b", ScriptedTool("c", kind="echo"))]
    with pytest.raises(Conflict, match="two tools are named 'a-b-c' in Copilot"):
        await play(COPILOT, prompt_of(mcps=twins), route="native")


@pytest.mark.anyio
async def test_a_required_server_that_copilot_cannot_connect_is_an_error(tmp_path: Path) -> None:
    # It starts once: for our own look at its tools.
    once = tmp_path / "once.py"
    once.write_text(
        "import pathlib, runpy, sys\n"
        f"pathlib.Path({str(tmp_path / 'started')!r}).mkdir()\n"
        "runpy.run_module('outfitter.testing.stdio_server', run_name='__main__')\n"
    )
    _, _, *args = scripted("demo", "add").args
    server = MCPServer.stdio("demo", sys.executable, (str(once), *args), required=True)
    with pytest.raises(McpConnectionError, match="Copilot could not connect it"):
        await play(COPILOT, prompt_of(mcps=[server, scripted("other", "echo")]), route="native")


@pytest.mark.anyio
async def test_servers_of_a_section_that_is_opened_later_need_the_bridge() -> None:
    opening = model_calls("open_sections", OPENING)
    with pytest.raises(Invalid, match="route='bridge'"):
        await play(COPILOT, hidden(scripted("demo", "add")), opening, ModelSays("a pity"), route="native")


@pytest.mark.anyio
async def test_an_agent_s_server_may_not_differ_from_another_of_its_name() -> None:
    helper = CopilotAgent("helper", "You calculate.", mcp_servers=[scripted("demo", "add")])
    prompt = prompt_of(mcps=[replace(scripted("demo", "add"), description="another")])
    with pytest.raises(Invalid, match="server 'demo' of an agent differs"):
        await play(COPILOT, prompt, route="native", agents=[helper])
