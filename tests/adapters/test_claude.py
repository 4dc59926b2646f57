"""The Claude Agent SDK with the real Claude Code: what is its own, with servers that Outfitter connects."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from outfitter.adapters import (
    ClaudeAgentSDKAdapter,
    ClaudeAgentSDKClientConfig,
    GatewayRoute,
    IsolationConfig,
    NetworkPolicy,
    SandboxConfig,
    StopReason,
)
from outfitter.bridge import McpConnectionPool
from outfitter.catalog import MCPServer
from outfitter.errors import CommandForbidden, Invalid, NeedsAuth, PromptValidationError
from outfitter.policy import SequentialDependencyPolicy
from outfitter.prompt import MarkdownSection, Prompt, PromptTemplate
from outfitter.testing import ModelFails, ModelSays, ScriptedModel, model_calls
from outfitter.tools import Tool
from tests.adapters.candidates import CLAUDE
from tests.adapters.kit import DEAD, MODEL_KEY, OPENING, hidden, play, prompt_of, scripted
from tests.adapters.processes import PROGRAM, Seen, started


@dataclass(frozen=True, slots=True)
class Verdict:
    approved: bool


FORM = "StructuredOutput"
SECTION = MarkdownSection(title="Task", key="task", template="Review it.")
ONE = Prompt(PromptTemplate[Verdict](ns="kit", key="one", sections=[SECTION]))
MANY = Prompt(PromptTemplate[list[Verdict]](ns="kit", key="many", sections=[SECTION]))


def note(text: str) -> str:
    """Keep a note."""
    return f"noted: {text}"


# ── what the model gets ──


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-ISOLATION")
async def test_the_model_gets_the_prompt_and_its_tools_and_the_program_nothing_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOST_SECRET", "canary-of-the-host")
    found: list[Seen] = []

    def look() -> str:
        """Look at the program."""
        found.extend(seen for seen in started() if PROGRAM in seen.argv)
        return "seen"

    prompt = prompt_of(Tool.wrap(note), Tool.wrap(look), mcps=[scripted("demo", "add", "echo")])
    turns = (model_calls(CLAUDE.shown("look")), ModelSays("done"))
    played = await play(CLAUDE, prompt, *turns)
    offered = {CLAUDE.shown(name) for name in ("note", "look", "demo_add", "demo_echo")}
    assert (set(played.requests[0].tools), len(played.requests[0].tools)) == (offered, 4)
    assert "Do it." in played.requests[0].text
    (program,) = found
    assert "canary" not in program.argv + repr(program.environ)
    assert MODEL_KEY not in program.argv
    home = Path(program.environ["HOME"])
    assert str(home) != os.environ.get("HOME")
    assert (program.is_alive, os.access(home, os.F_OK)) == (False, False)


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-OPEN")
async def test_an_opened_section_is_shown_whole_and_its_tools_are_there_in_the_next_turn() -> None:
    turns = (
        model_calls(CLAUDE.shown("open_sections"), OPENING),
        model_calls(CLAUDE.shown("demo_add"), {"a": 1, "b": 2}),
        ModelSays("three"),
    )
    first, second, third = (played := await play(CLAUDE, hidden(scripted("demo", "add")), *turns)).requests
    assert first.tools == (CLAUDE.shown("open_sections"),)
    assert "Calculate with care." not in first.text
    assert CLAUDE.shown("demo_add") in second.tools
    assert second.answers[0].startswith("Opened: numbers.")
    assert "Calculate with care." in second.answers[0]
    assert third.answers[1] == '{"sum": 3}'
    assert [(event.name, event.adapter) for event in played.events] == [
        ("open_sections", "claude"),
        ("demo_add", "mcp:demo"),
    ]


@pytest.mark.anyio
async def test_what_cannot_be_called_is_told_to_the_model_and_recorded() -> None:
    turns = (
        model_calls(CLAUDE.shown("missing")),
        model_calls(CLAUDE.shown("note"), "{not json"),
        model_calls(CLAUDE.shown("note"), {"text": 7}),
        ModelSays("I give up"),
    )
    played = await play(CLAUDE, prompt_of(Tool.wrap(note)), *turns)
    codes = ["unknown_tool", "invalid_arguments", "invalid_arguments"]
    assert [event.result.code for event in played.events] == codes
    assert [call.result.code for call in played.response.tool_calls] == codes
    unknown, unread, unfit = played.requests[-1].answers
    assert "No such tool" in unknown
    assert "could not be parsed" in unread
    assert unfit.startswith("Error (invalid_arguments)")


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-HOOKS")
async def test_built_in_tools_are_off_unless_they_are_named_and_governed_when_they_are(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("dear reader")
    read = model_calls("Read", {"file_path": str(file)})
    turns = (read, model_calls(CLAUDE.shown("note"), {"text": "ready"}), read, ModelSays("done"))
    prompt = prompt_of(Tool.wrap(note), policies=[SequentialDependencyPolicy({"Read": {"note"}})])
    played = await play(CLAUDE, prompt, *turns, tools=["Read"], cwd=tmp_path)
    assert [(event.name, event.adapter, event.decision) for event in played.events] == [
        ("Read", "claude", "deny"),
        ("note", "claude", "allow"),
        ("Read", "claude", "allow"),
    ]
    assert "dear reader" in played.requests[-1].answers[2]


# ── the answer ──


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-OUTPUT")
async def test_an_answer_has_the_form_that_was_asked_for_and_is_mended_once() -> None:
    good = model_calls(FORM, {"items": [{"approved": True}]})
    played = await play(CLAUDE, MANY, model_calls(FORM, {"items": [{"approved": "yes"}]}), good)
    assert played.response.require() == [Verdict(approved=True)]
    assert (played.response.rounds, played.events) == (2, ())
    assert "/items/0/approved" in played.requests[1].answers[0]


@pytest.mark.anyio
async def test_an_answer_that_does_not_fit_again_is_no_output() -> None:
    wrong = model_calls(FORM, {"approved": "yes"})
    spoiled = (await play(CLAUDE, ONE, wrong, wrong, wrong)).response
    assert (spoiled.stop_reason, spoiled.output) == (StopReason.INVALID_OUTPUT, None)
    plain = (await play(CLAUDE, ONE, ModelSays("Looks good!"), ModelSays("Really!"))).response
    assert (plain.stop_reason, plain.text) == (StopReason.INVALID_OUTPUT, "Really!")


@pytest.mark.anyio
async def test_an_answer_that_stays_cut_or_refused_says_so() -> None:
    cut = (await play(CLAUDE, prompt_of(), *[ModelSays("half an ans", is_cut=True)] * 6)).response
    assert (cut.stop_reason, cut.text) == (StopReason.LENGTH, "half an ans")
    refused = (await play(CLAUDE, prompt_of(), *[ModelSays("I will not", is_refusal=True)] * 4)).response
    assert (refused.stop_reason, refused.detail) == (StopReason.REFUSED, "I will not")


# ── what goes wrong ──


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-FAULTS")
async def test_no_error_of_the_provider_quotes_the_key() -> None:
    with ScriptedModel(*[ModelFails(401, f"invalid x-api-key: {MODEL_KEY}")] * 4) as model:
        with pytest.raises(NeedsAuth, match="refuses the credentials") as caught:
            await CLAUDE.make(model).aevaluate(prompt_of())
        assert MODEL_KEY in model.requests[0].headers["x-api-key"]
    assert MODEL_KEY not in str(caught.value) + repr(CLAUDE.make(model))
    assert "model 'scripted'" in str(caught.value)


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-GONE")
async def test_cancelling_ends_every_process() -> None:
    begun = anyio.Event()

    async def wait_for_ever() -> None:
        """Wait."""
        begun.set()
        await anyio.sleep_forever()

    seen: list[Seen] = []
    prompt = prompt_of(Tool.wrap(wait_for_ever), mcps=[scripted("demo", "add")])
    with ScriptedModel(model_calls(CLAUDE.shown("wait_for_ever"))) as model:
        async with anyio.create_task_group() as group:
            adapter = CLAUDE.make(model, route="native")

            async def evaluate() -> None:
                await adapter.aevaluate(prompt)

            group.start_soon(evaluate)
            await begun.wait()
            seen.extend(started())
            group.cancel_scope.cancel()
    assert all(any(word in each.argv for each in seen) for word in (PROGRAM, "stdio_server"))
    assert [each for each in seen if each.is_alive] == []


def test_without_a_key_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "CLAUDE_CODE_"))]:
        monkeypatch.delenv(name)
    with pytest.raises(NeedsAuth, match="ANTHROPIC_API_KEY"):
        ClaudeAgentSDKAdapter("any").evaluate(prompt_of())


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(Invalid, match="no route 'straight'"):
        ClaudeAgentSDKClientConfig(route=cast("Any", "straight"))
    with pytest.raises(Invalid, match="belong together"):
        ClaudeAgentSDKClientConfig(route="gateway")
    with pytest.raises(Invalid, match="belong together"):
        ClaudeAgentSDKClientConfig(gateway=GatewayRoute("http://127.0.0.1:8700/mcp/a", "token"))
    with pytest.raises(Invalid, match="a pool is for route='bridge'"):
        ClaudeAgentSDKClientConfig(route="native", pool=McpConnectionPool())
    with pytest.raises(Invalid, match="told to ignore them"):
        ClaudeAgentSDKClientConfig(route="ignore", mcp_servers=[DEAD])
    with pytest.raises(PromptValidationError, match="'dead' twice"):
        ClaudeAgentSDKClientConfig(mcp_servers=[DEAD, DEAD])


@pytest.mark.promise("CLAUDE-ISOLATION")
def test_servers_are_held_in_the_bounds_of_the_isolation() -> None:
    local, remote = (
        MCPServer.stdio("local", "prog", env={"A": "own"}),
        MCPServer.http("api", "https://api.github.com/x"),
    )
    plain = IsolationConfig(env={"A": "1", "B": "2"}).confine(local)
    assert (dict(plain.env), plain.sandbox) == ({"A": "own", "B": "2"}, "none")
    assert IsolationConfig(sandbox=SandboxConfig()).confine(local).sandbox == "isolated"
    assert IsolationConfig(NetworkPolicy.no_network()).confine(local).sandbox == "isolated"
    github = IsolationConfig(NetworkPolicy.with_domains("*.github.com"))
    assert github.confine(remote) is remote
    with pytest.raises(CommandForbidden, match="does not allow the host of server 'dead'"):
        github.confine(DEAD)
    with pytest.raises(Invalid, match="cannot be limited to domains"):
        github.confine(local)


@pytest.mark.promise("ADAPT-LAZY")
def test_the_sdk_is_imported_when_a_prompt_is_evaluated_and_not_before() -> None:
    program = (
        "import sys\n"
        "from outfitter.adapters import ClaudeAgentSDKAdapter\n"
        "from outfitter.prompt import Prompt, PromptTemplate\n"
        "adapter = ClaudeAgentSDKAdapter('any')\n"
        "assert not {'claude_agent_sdk', 'mcp'} & sys.modules.keys()\n"
        "sys.modules['claude_agent_sdk'] = None\n"
        "adapter.evaluate(Prompt(PromptTemplate(ns='a', key='b', sections=[])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert "Unavailable: the Claude Agent SDK is not installed (pip install 'outfitter[claude]')" in done.stderr
