"""The Claude Agent SDK with servers that Claude Code connects itself: natively, or through a real gateway."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outfitter.adapters import GatewayRoute
from outfitter.catalog import MCPServer, ToolFilter
from outfitter.errors import Conflict, McpConnectionError
from outfitter.policy import SequentialDependencyPolicy
from outfitter.testing import (
    Crash,
    ModelSays,
    Script,
    When,
    model_calls,
    serve_http,
)
from outfitter.tools import Tool
from tests.adapters.candidates import CLAUDE
from tests.adapters.kit import DEAD, MODEL_KEY, OPENING, Played, hidden, play, prompt_of, scripted
from tests.adapters.processes import PROGRAM, Seen, started
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


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-NATIVE")
@pytest.mark.promise("CLAUDE-CANARY")
async def test_native_servers_get_their_secrets_and_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIT_TOKEN", "canary-token")
    found: list[Seen] = []
    process = scripted("local", "headers")
    local = MCPServer.stdio("local", process.command or "", process.args, env={"KEY": "canary-${KIT_TOKEN}"})
    async with serve_http(Script("remote")) as serving:
        secret = MCPServer.http("remote", serving.url, headers={"Authorization": "Bearer ${KIT_TOKEN}"})
        plain = MCPServer.sse("plain", serving.sse_url, headers={"X-Tenant": "tenant-7"})
        turns = (
            model_calls("mcp__remote__add", {"a": 1, "b": 2}),
            model_calls("mcp__plain__headers"),
            model_calls("mcp__local__headers"),
            model_calls(CLAUDE.shown("look")),
            ModelSays("done"),
        )
        prompt = prompt_of(looker(found), mcps=[secret, plain, local])
        played = await play(CLAUDE, prompt, *turns, route="native")
    assert called(played) == [
        ("remote_add", "mcp:remote", "remote", ""),
        ("plain_headers", "mcp:plain", "plain", ""),
        ("local_headers", "mcp:local", "local", ""),
        ("look", "claude", None, ""),
    ]
    assert [call.call_id for call in played.response.tool_calls] == [event.call_id for event in played.events]
    assert all(event.duration > 0 for event in played.events)
    added, tenant, variables, _ = played.requests[-1].answers
    assert added == '{"sum":3}'
    assert "tenant-7" in tenant
    assert "KEY" in variables
    assert "ANTHROPIC" not in variables
    assert "CLAUDE" not in variables
    program, server = _told_apart(found)
    assert "canary" not in program.argv + repr(program.environ)
    assert "canary" not in server.argv
    assert server.environ["KEY"] == "canary-canary-token"
    assert MODEL_KEY not in repr(server.environ)
    for request in played.requests:
        assert "canary" not in request.text + repr(request.headers)
    assert "canary" not in repr(played.response) + repr(played.events)


def _told_apart(found: list[Seen]) -> tuple[Seen, Seen]:
    """Claude Code, and the server that it started."""
    (server,) = (seen for seen in found if "stdio_server" in seen.argv)
    (program,) = (seen for seen in found if PROGRAM in seen.argv)
    return program, server


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-GATEWAY")
@pytest.mark.promise("CLAUDE-CANARY")
async def test_through_a_gateway_the_program_holds_no_header_and_no_secret_of_a_server(tmp_path: Path) -> None:
    found: list[Seen] = []
    async with serve_http(Script("demo")) as serving:
        real = MCPServer.http("demo", serving.url, headers={"X-Tenant": "canary-tenant"})
        async with gateway(agent("reviewer", real), tokens=tmp_path / "tokens.json") as running:
            assert running.tokens is not None
            token, _ = running.tokens.issue("reviewer")
            route = GatewayRoute(running.url("reviewer"), token)
            turns = (
                model_calls("mcp__demo__add", {"a": 1, "b": 2}),
                model_calls(CLAUDE.shown("look")),
                ModelSays("done"),
            )
            prompt = prompt_of(looker(found), mcps=[real])
            played = await play(CLAUDE, prompt, *turns, route="gateway", gateway=route)
    assert called(played) == [("demo_add", "mcp:demo", "demo", ""), ("look", "claude", None, "")]
    assert played.requests[-1].answers[0] == '{"sum":3}'
    (program,) = (seen for seen in found if PROGRAM in seen.argv)
    for secret in ("canary", token):
        assert secret not in program.argv + repr(program.environ)
        assert not [request for request in played.requests if secret in request.text]


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-HOOKS")
async def test_calls_that_the_program_makes_are_governed_and_a_failed_one_counts_for_nothing() -> None:
    policy = SequentialDependencyPolicy({"add": {"fail"}})
    crash = Crash(When(method="tools/call", after=2))
    server = scripted("demo", "add", "fail", "echo", faults=(crash,))
    prompt = prompt_of(Tool.wrap(note), mcps=[server], policies=[policy])
    turns = (
        model_calls("mcp__demo__fail", {"message": "kaput"}),
        model_calls("mcp__demo__add", {"a": 1, "b": 2}),
        model_calls("mcp__demo__echo", {"text": "once"}),
        model_calls("mcp__demo__echo", {"text": "twice"}),
        model_calls(CLAUDE.shown("note"), {"text": "went on"}),
        ModelSays("done"),
    )
    played = await play(CLAUDE, prompt, *turns, route="native")
    assert [(event.name, event.result.code, event.decision) for event in played.events] == [
        ("demo_fail", "tool_error", "allow"),
        ("demo_add", "denied", "deny"),
        ("demo_echo", "", "allow"),
        ("demo_echo", "upstream_lost", "allow"),
        ("note", "", "allow"),
    ]
    failed, denied, _, lost, _ = played.requests[-1].answers
    assert failed == "kaput"
    assert "policy" in denied
    assert "fail" in denied
    assert "Connection closed" in lost
    assert "The MCP server 'demo' is not available" in played.requests[-1].text
    assert played.response.is_complete


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-NATIVE")
async def test_the_model_sees_what_passes_the_filter_and_a_dead_server_is_told_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    chosen = replace(scripted("demo", "add", "echo", "fail"), tools=ToolFilter(("add", "e*")))
    own = scripted("own", "stats")
    prompt = prompt_of(Tool.wrap(note), mcps=[DEAD, chosen])
    turns = (model_calls("mcp__demo__fail", {"message": "no"}), ModelSays("done"))
    played = await play(CLAUDE, prompt, *turns, route="native", mcp_servers=[own])
    expected = {CLAUDE.shown("note"), "mcp__demo__add", "mcp__demo__echo", "mcp__own__stats"}
    assert set(played.requests[0].tools) == expected
    assert [event.result.code for event in played.events] == ["unknown_tool"]
    assert "server 'dead'" in caplog.text


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-STATUS")
async def test_a_required_server_that_the_program_cannot_connect_is_an_error() -> None:
    prompt = prompt_of(Tool.wrap(note), mcps=[replace(DEAD, required=True), scripted("demo", "add")])
    with pytest.raises(McpConnectionError, match="server 'dead'") as caught:
        await play(CLAUDE, prompt, ModelSays("never"), route="native")
    assert "Claude Code cannot connect it" in str(caught.value)


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-OPEN")
async def test_an_opened_section_brings_its_native_servers() -> None:
    turns = (
        model_calls(CLAUDE.shown("open_sections"), OPENING),
        model_calls("mcp__demo__add", {"a": 1, "b": 2}),
        ModelSays("three"),
    )
    played = await play(CLAUDE, hidden(scripted("demo", "add"), DEAD), *turns, route="native")
    opened, added = played.requests[-1].answers
    assert "Calculate with care." in opened
    assert opened.endswith("Not available now: dead.")
    assert added == '{"sum":3}'
    assert [event.name for event in played.events] == ["open_sections", "demo_add"]


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-NATIVE")
async def test_servers_that_the_program_cannot_tell_apart_are_refused() -> None:
    servers = [MCPServer.http(name, "http://127.0.0.1:9/mcp") for name in ("a", "a__b")]
    with pytest.raises(Conflict, match="the servers 'a' and 'a__b' apart"):
        await play(CLAUDE, prompt_of(mcps=servers), ModelSays("never"), route="native")
