"""On every adapter: which servers an evaluation has, when they are connected, and what they keep to themselves."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from outfitter.adapters import StopReason
from outfitter.bridge import McpIntegrationSection
from outfitter.catalog import MCPServer
from outfitter.errors import Conflict, Invalid, McpConnectionError, PromptValidationError
from outfitter.prompt import MarkdownSection, Prompt, PromptTemplate
from outfitter.session import Session
from outfitter.testing import ModelSays, Script, ScriptedModel, SlowStart, model_calls, serve_http
from outfitter.tools import Deadline, Tool
from tests.adapters.kit import DEAD, MODEL_KEY, OPENING, Candidate, Play, hidden, play, prompt_of, quick_pool, scripted


def ping() -> str:
    """Answer."""
    return "pong"


# ── whose servers ──


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-SERVERS")
async def test_servers_of_the_adapter_come_first(candidate: Candidate) -> None:
    own, prompted = scripted("own", "add"), scripted("prompted", "echo")
    played = await play(candidate, prompt_of(mcps=[prompted]), ModelSays("ok"), mcp_servers=[own])
    assert played.requests[0].tools == tuple(map(candidate.shown, ("own_add", "prompted_echo")))


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-SERVERS")
async def test_of_two_different_servers_of_one_name_the_adapter_s_is_used(
    candidate: Candidate, caplog: pytest.LogCaptureFixture
) -> None:
    own, prompted = scripted("demo", "add"), scripted("demo", "echo")
    played = await play(candidate, prompt_of(mcps=[prompted]), ModelSays("ok"), mcp_servers=[own])
    assert played.requests[0].tools == (candidate.shown("demo_add"),)
    (warning,) = (record for record in caplog.records if "adapters.duplicate_mcp" in record.getMessage())
    assert warning.levelno == logging.WARNING


@pytest.mark.anyio
async def test_equal_servers_of_adapter_and_prompt_are_one_without_a_word(
    candidate: Candidate, caplog: pytest.LogCaptureFixture
) -> None:
    server = scripted("demo", "add")
    played = await play(candidate, prompt_of(mcps=[server]), ModelSays("ok"), mcp_servers=[server])
    assert played.requests[0].tools == (candidate.shown("demo_add"),)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.anyio
async def test_a_strict_prompt_refuses_another_server_of_the_same_name(candidate: Candidate) -> None:
    section = MarkdownSection(title="Task", key="task", template="Do it.", mcps=[DEAD])
    prompt = Prompt(PromptTemplate(ns="kit", key="strict", sections=[section], strict_mcps=True))
    with pytest.raises(PromptValidationError, match="differs from the one of adapter"):
        await play(candidate, prompt, mcp_servers=[MCPServer.http("dead", "http://127.0.0.1:10/mcp")])


def test_an_adapter_refuses_one_name_twice_and_servers_it_would_ignore(candidate: Candidate) -> None:
    with ScriptedModel() as model:
        with pytest.raises(PromptValidationError, match="'dead' twice"):
            candidate.make(model, mcp_servers=[DEAD, DEAD])
        with pytest.raises(Invalid, match="told to ignore them"):
            candidate.make(model, mcp_servers=[DEAD], mcp="ignore")
        with pytest.raises(Invalid, match="no way 'native'"):
            candidate.make(model, mcp="native")


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-IGNORE")
async def test_servers_can_be_ignored_with_a_word_in_the_log(
    candidate: Candidate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "outfitter.adapters")
    played = await play(candidate, prompt_of(Tool.wrap(ping), mcps=[DEAD]), ModelSays("ok"), mcp="ignore")
    assert played.requests[0].tools == (candidate.shown("ping"),)
    (word,) = (record for record in caplog.records if "adapters.mcp_ignored" in record.getMessage())
    assert (word.levelno, word.__dict__["context"]["count"]) == (logging.DEBUG, 1)


@pytest.mark.anyio
async def test_two_tools_of_one_name_are_refused_before_the_model_is_asked(candidate: Candidate) -> None:
    def demo_add() -> str:
        """Answer."""
        return "mine"

    async with quick_pool() as pool:
        with pytest.raises(Conflict, match="two tools are named 'demo_add'"):
            await play(candidate, prompt_of(Tool.wrap(demo_add), mcps=[scripted("demo", "add")]), pool=pool)
        assert pool.connections() == ()


@pytest.mark.anyio
async def test_what_stands_in_a_pool_of_yours_is_shared_and_stays_connected(candidate: Candidate) -> None:
    server = scripted("demo", "add")
    async with quick_pool() as pool:
        held = (await pool.aconnect([server]))["demo"]
        played = await play(candidate, prompt_of(mcps=[server]), ModelSays("ok"), pool=pool)
        assert pool.connections() == (held,)
    assert played.requests[0].tools == (candidate.shown("demo_add"),)


# ── servers that fail ──


@pytest.mark.anyio
@pytest.mark.promise("DEGRADE-ALL")
async def test_a_prompt_whose_only_server_is_dead_is_evaluated_without_it_and_says_so(candidate: Candidate) -> None:
    dead = replace(DEAD, fallback="use the `gh` CLI")
    async with quick_pool() as pool:
        played = await play(candidate, prompt_of(mcps=[dead]), ModelSays("ok"), pool=pool)
    assert played.response.text == "ok"
    assert "Not available now: dead. Instead of 'dead': use the `gh` CLI." in played.requests[0].text


@pytest.mark.anyio
async def test_a_prompt_whose_required_server_is_dead_is_not_evaluated(candidate: Candidate) -> None:
    async with quick_pool() as pool:
        with pytest.raises(McpConnectionError, match="server 'dead'"):
            await play(candidate, prompt_of(mcps=[replace(DEAD, required=True)]), ModelSays("ok"), pool=pool)


@pytest.mark.anyio
async def test_a_dead_server_does_not_take_the_others_with_it(candidate: Candidate) -> None:
    prompt = prompt_of(mcps=[DEAD, scripted("demo", "add")])
    async with quick_pool() as pool:
        played = await play(candidate, prompt, ModelSays("ok"), pool=pool)
    assert played.requests[0].tools == (candidate.shown("demo_add"),)


@pytest.mark.anyio
async def test_a_server_that_does_not_start_is_waited_for_until_the_deadline(candidate: Candidate) -> None:
    prompt = prompt_of(mcps=[scripted("demo", "add", faults=(SlowStart(60.0),))])
    async with quick_pool() as pool:
        played = await Play(candidate, (), deadline=Deadline.after(1), options={"pool": pool}).of(prompt)
        assert pool.connections() == ()
    assert (played.response.stop_reason, played.requests) == (StopReason.DEADLINE, ())


@pytest.mark.anyio
async def test_servers_of_an_integration_section_are_used_as_they_are_connected(candidate: Candidate) -> None:
    session = Session()
    async with McpIntegrationSection(servers=[scripted("demo", "add")], session=session) as section:
        prompt = Prompt(PromptTemplate(ns="kit", key="section", sections=[section]))
        turns = (model_calls(candidate.shown("demo_add"), {"a": 1, "b": 2}), ModelSays("three"))
        played = await Play(candidate, turns, session).of(prompt)
        assert section.connected
    assert [(event.adapter, event.result.success) for event in played.events] == [("mcp:demo", True)]


# ── opened sections ──


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-OPEN")
async def test_an_opened_section_is_shown_whole_and_its_tools_are_there_in_the_next_turn(candidate: Candidate) -> None:
    turns = (
        model_calls(candidate.shown("open_sections"), OPENING),
        model_calls(candidate.shown("demo_add"), {"a": 1, "b": 2}),
        ModelSays("three"),
    )
    async with quick_pool() as pool:
        played = await play(candidate, hidden(scripted("demo", "add")), *turns, pool=pool)
        assert pool.connections() == ()
    first, second, third = played.requests
    assert first.tools == (candidate.shown("open_sections"),)
    assert "Calculate with care." not in first.text
    assert second.tools == (candidate.shown("demo_add"),)
    assert "Calculate with care." in second.text
    assert second.answers[0].startswith("Opened: numbers.")
    assert third.answers[1] == '{"sum": 3}'
    assert [event.name for event in played.events] == ["open_sections", "demo_add"]


@pytest.mark.anyio
async def test_a_server_that_stands_stays_connected_when_a_section_brings_another(candidate: Candidate) -> None:
    numbers = hidden(scripted("second", "echo")).template.sections[0].section
    task = MarkdownSection(title="Task", key="task", template="Do it.", mcps=[scripted("first", "stats", "add")])
    prompt = Prompt(PromptTemplate(ns="kit", key="two", sections=[task, numbers]))
    turns = (
        model_calls(candidate.shown("first_add"), {"a": 1, "b": 1}),
        model_calls(candidate.shown("open_sections"), OPENING),
        model_calls(candidate.shown("first_stats")),
        ModelSays("ok"),
    )
    played = await play(candidate, prompt, *turns)
    assert played.requests[2].tools == tuple(map(candidate.shown, ("first_stats", "first_add", "second_echo")))
    assert all(call.result.success for call in played.response.tool_calls)


@pytest.mark.anyio
async def test_the_model_hears_that_the_server_of_an_opened_section_is_dead(candidate: Candidate) -> None:
    turns = (model_calls(candidate.shown("open_sections"), OPENING), ModelSays("a pity"))
    async with quick_pool() as pool:
        played = await play(candidate, hidden(DEAD), *turns, pool=pool)
    assert played.requests[-1].answers[0].endswith("Not available now: dead.")
    assert played.response.is_complete


@pytest.mark.anyio
async def test_a_required_server_of_an_opened_section_must_be_there(candidate: Candidate) -> None:
    turns = (model_calls(candidate.shown("open_sections"), OPENING), ModelSays("a pity"))
    async with quick_pool() as pool:
        with pytest.raises(McpConnectionError, match="server 'dead'"):
            await play(candidate, hidden(replace(DEAD, required=True)), *turns, pool=pool)


# ── secrets ──


@pytest.mark.anyio
@pytest.mark.promise("ADAPT-CANARY")
async def test_no_header_and_no_secret_of_a_server_reaches_the_model(
    candidate: Candidate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("KIT_TOKEN", "canary-token")
    process = scripted("process", "add")
    local = MCPServer.stdio("process", process.command or "", process.args, env={"KEY": "canary-env-${KIT_TOKEN}"})
    async with serve_http(Script("remote")) as serving:
        headers = {"Authorization": "Bearer ${KIT_TOKEN}", "X-Tenant": "canary-tenant"}
        remote = MCPServer.http("remote", serving.url, headers=headers)
        turns = (
            model_calls(candidate.shown("remote_add"), {"a": 1, "b": 2}),
            model_calls(candidate.shown("process_add"), {"a": 1, "b": 2}),
            ModelSays("three"),
        )
        played = await play(candidate, prompt_of(mcps=[local, remote]), *turns)
    assert [event.result.success for event in played.events] == [True, True]
    for request in played.requests:
        assert "canary" not in request.text
        assert not [name for name, value in request.headers.items() if "canary" in value]
    assert "canary" not in repr(played.response) + repr(played.events) + caplog.text
    assert MODEL_KEY not in caplog.text
