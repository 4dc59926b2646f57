"""Tools that change while they are used, progress, resources and prompts."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from outfitter.bridge import McpIntegrationSection, McpResources, ToolListChanged
from outfitter.errors import McpError, NotFound
from outfitter.prompt import Prompt, PromptTemplate
from outfitter.session import Session, SlicePolicy, append_all
from outfitter.testing import (
    Garbage,
    ListStorm,
    Script,
    ScriptedPrompt,
    ScriptedResource,
    When,
    http_server_definition,
    serve_http,
)
from outfitter.tools import ResourceRegistry, Tool, ToolContext, aexecute, execute
from tests.bridge.kit import Waiting, acall, call, quick_pool, scripted, structured, tool_of, value_of


@pytest.mark.promise("BRIDGE-HOT-RELOAD")
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_changed_list_is_taken_over_and_told_to_the_session(era: str) -> None:
    session = Session()
    changes = Waiting(session, ToolListChanged)
    with McpIntegrationSection(servers=[scripted(eras=(era,))], session=session) as section:
        if era == "modern":
            call(section, "stats", until_listeners=1)
        before = section.tools()
        call(section, "touch", list="tools")
        (change,) = changes.wait()
        assert (change.server, change.added, change.removed, change.changed) == ("one", ("one_appeared",), (), ())
        assert change.session_id == session.session_id
        assert section.tools()[:-1] == before, "what did not change stays the same object"
        assert call(section, "appeared", text="new").success
        call(section, "touch", list="tools")
        changes.wait(lambda events: len(events) == 2)
        assert changes.events[1].removed == ("one_appeared",)
        assert section.tools() == before


@pytest.mark.promise("BRIDGE-HOT-RELOAD")
def test_sections_that_share_a_connection_hear_both_and_leave_alone() -> None:
    sessions = [Session(), Session()]
    changes = [Waiting(session, ToolListChanged) for session in sessions]
    with quick_pool() as pool:
        first, second = (McpIntegrationSection(servers=[scripted()], session=one, pool=pool) for one in sessions)
        with first:
            with second:
                call(first, "stats", until_listeners=1)
                call(first, "touch", list="tools")
                assert changes[0].wait()
                assert changes[1].wait()
            call(first, "touch", list="tools")
            changes[0].wait(lambda events: len(events) == 2)
            assert len(changes[1].events) == 1


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-HOT-RELOAD")
async def test_a_session_can_keep_changes_and_a_list_is_read_again_on_demand() -> None:
    session = Session()
    session[ToolListChanged].register(ToolListChanged, append_all, policy=SlicePolicy.LOG)
    async with serve_http(Script(eras=("legacy",))) as serving:
        server = http_server_definition("one", serving.url)
        async with McpIntegrationSection(servers=[server], session=session) as section:
            before = serving.hits
            await section.arefresh()
            assert serving.hits > before
            assert session[ToolListChanged].all() == ()
            serving.ledger.touched ^= {"tools"}
            await section.arefresh()
            (change,) = session[ToolListChanged].all()
            assert change.added == ("one_appeared",)
            with pytest.raises(McpError, match="blocking call"):
                section.refresh()


@pytest.mark.promise("BRIDGE-HOT-RELOAD")
def test_a_storm_of_notices_costs_few_requests_and_no_call() -> None:
    server = scripted(eras=("legacy",), faults=(ListStorm(count=200),))
    with McpIntegrationSection(servers=[server], session=Session()) as section:
        for number in range(5):
            assert call(section, "echo", text=str(number)).success
        requests = structured(call(section, "stats"))["requests"]
        assert requests["tools/list"] < 60


@pytest.mark.promise("BRIDGE-HOT-RELOAD")
def test_a_list_that_cannot_be_read_leaves_the_old_tools(caplog: pytest.LogCaptureFixture) -> None:
    server = scripted(eras=("legacy",), faults=(Garbage(When(method="tools/list", after=1), text="nonsense"),))
    with (
        caplog.at_level(logging.CRITICAL, "outfitter"),
        quick_pool() as pool,
        McpIntegrationSection(servers=[server], session=Session(), pool=pool) as section,
    ):
        before = section.tools()
        with pytest.raises(McpError):
            section.refresh()
        assert section.tools() == before


@pytest.mark.promise("BRIDGE-PROGRESS")
def test_progress_is_reported_to_whoever_asked_and_one_who_fails_disturbs_nothing() -> None:
    told: list[tuple[float, float | None, str]] = []

    def report(progress: float, total: float | None, message: str) -> None:
        told.append((progress, total, message))
        raise ValueError("a listener that fails")

    with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        assert execute(tool_of(section, "progress"), {"n": 3}, context=ToolContext(report=report)).success
    assert told == [(1, 3, ""), (2, 3, ""), (3, 3, "")]


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-PROGRESS")
async def test_progress_comes_on_the_loop_of_whoever_asked() -> None:
    told: list[float] = []
    here = asyncio.get_running_loop()

    async def ask(section: McpIntegrationSection) -> None:
        def report(progress: float, _total: float | None, _message: str) -> None:
            told.append(progress)
            assert asyncio.get_running_loop() is here

        await aexecute(tool_of(section, "progress"), {"n": 2}, context=ToolContext(report=report))

    with quick_pool() as background:
        section = McpIntegrationSection(servers=[scripted()], session=Session(), pool=background)
        await section.aconnect()
        await ask(section)
        await section.adisconnect()
    assert told == [1, 2]


@pytest.mark.promise("B14")
def test_a_huge_answer_reaches_the_program_whole_and_the_model_in_part() -> None:
    with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        result = call(section, "big", size=3_000_000)
        assert len(result.message) < 101_000
        assert "2900000 more characters" in result.message
        assert len(value_of(result)["content"][0]["text"]) == 3_000_000
        assert call(section, "echo").success


@pytest.mark.promise("BRIDGE-RESOURCES")
def test_a_handler_reads_resources_wherever_they_are() -> None:
    more = replace(scripted("two", *Script().tools[:1], resources=(ScriptedResource("test://two", "second"),)))

    def handle(_: None, *, context: ToolContext) -> str:
        resources = context.resources.get(McpResources)
        assert resources is not None
        assert [item.uri for item in resources.list()] == ["test://greeting", "test://numbers", "test://two"]
        assert [item.server for item in resources.list("two")] == ["two"]
        assert resources.templates() is not None
        with pytest.raises(NotFound, match="test://nothing"):
            resources.read("test://nothing")
        with pytest.raises(McpError):
            resources.read("test://nothing", server="one")
        with pytest.raises(NotFound, match="nobody"):
            resources.read("test://two", server="nobody")
        reading = resources.read("test://two")
        assert (reading.server, reading.contents[0].mime_type, reading.data) == ("two", "text/plain", b"")
        return reading.text

    with McpIntegrationSection(servers=[scripted(), more], session=Session()) as section:
        context = ToolContext(resources=ResourceRegistry(section.resources()))
        assert execute(Tool[None, str]("mine", "Reads", handle), context=context).value == "second"


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-RESOURCES")
async def test_resources_are_read_asynchronously_too() -> None:
    async with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        resources = McpResources(section.pool)
        assert [item.name for item in await resources.alist()] == ["greeting", "numbers"]
        assert await resources.atemplates() is not None
        assert (await resources.aread("test://greeting")).text == "hello"
        assert (await acall(section, "echo")).success


@pytest.mark.promise("BRIDGE-PROMPTS")
def test_a_prompt_of_a_server_becomes_a_section_in_which_nothing_is_filled_in() -> None:
    prompts = (ScriptedPrompt("greet", "Pay $5 to {who}.", ("who",)),)
    with McpIntegrationSection(servers=[scripted(prompts=prompts)], session=Session()) as section:
        greeting = section.prompt_section("one", "greet", {"who": "$you, not ${other} or $$"})
        text = Prompt(PromptTemplate(ns="demo", key="p", sections=[greeting])).render().text
        assert text == "## one: greet\n\nPay $5 to $you, not ${other} or $$."
        with pytest.raises(McpError):
            section.prompt_section("one", "no such prompt")
        with pytest.raises(McpError, match="not connected"):
            section.prompt_section("nobody", "greet")


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-PROMPTS")
async def test_a_prompt_is_fetched_asynchronously_too() -> None:
    async with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        greeting = await section.aprompt_section("one", "greet", {"who": "you"})
        assert greeting.render_body(None) == "Say hello to you."
