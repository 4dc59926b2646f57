"""Document 3's table of failures, row by row, with real servers; and what a failure leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from outfitter.bridge import McpIntegrationSection, ToolListChanged
from outfitter.calls import Done, Failed, TimedOut, ToolInvoked, Unavailable
from outfitter.errors import McpConnectionError, OutfitterError
from outfitter.session import Session
from outfitter.testing import Crash, DeadOnArrival, Garbage, Hang, Script, When, http_server_definition, serve_http
from outfitter.tools import Budget, BudgetTracker, Deadline, Tool, ToolContext, aexecute, execute
from tests.bridge.kit import DEAD, Waiting, acall, call, last_event, quick_pool, scripted, structured, tool_of
from tests.upstream.real import children_running
from tests.upstream.stdio_kit import zombies


@dataclass(frozen=True)
class Note:
    text: str


@pytest.mark.promise("MCP-FAILURE-REFUSED")
def test_a_refused_connection_is_an_error_on_connect() -> None:
    with quick_pool() as pool:
        section = McpIntegrationSection(servers=[DEAD], session=Session(), pool=pool)
        with pytest.raises(McpConnectionError, match=r"127\.0\.0\.1") as raised:
            section.connect()
    assert (raised.value.server_name, raised.value.transport) == ("dead", DEAD.transport)
    assert not section.connected


@pytest.mark.promise("MCP-FAILURE-LOST")
def test_a_lost_connection_comes_back_by_itself_and_the_call_is_not_repeated() -> None:
    session = Session()
    server = scripted(faults=(Crash(When(name="add")),))
    with McpIntegrationSection(servers=[server], session=session) as section:
        assert call(section, "echo", text="before").success
        lost = call(section, "add", a=1, b=2)
        assert (lost.success, lost.code) == (False, "upstream_lost")
        assert isinstance(last_event(session).outcome, Unavailable)
        assert call(section, "echo", text="after").success
        assert section.connected
        requests = structured(call(section, "stats"))["requests"]
        assert requests["tools/call"] == 2, "echo and stats in the new process: 'add' was not sent again"
        assert len(children_running("outfitter.testing.stdio_server")) == 1
    assert zombies() == []
    assert children_running("outfitter.testing.stdio_server") == []


@pytest.mark.promise("MCP-FAILURE-UNKNOWN")
def test_a_tool_that_is_gone_is_a_result() -> None:
    session = Session()
    changes = Waiting(session, ToolListChanged)
    with McpIntegrationSection(servers=[scripted()], session=session) as section:
        call(section, "touch", list="tools")
        changes.wait()
        gone = tool_of(section, "appeared")
        call(section, "touch", list="tools")
        changes.wait(lambda events: len(events) == 2)
        result = execute(gone, {}, context=ToolContext(session=session))
    assert (result.success, result.code, result.value) == (False, "upstream_error", None)
    assert result.message
    assert isinstance(last_event(session).outcome, Failed)


@pytest.mark.anyio
@pytest.mark.promise("MCP-FAILURE-SCHEMA")
async def test_unfit_arguments_are_a_result_and_nothing_is_sent() -> None:
    session = Session()
    async with serve_http(Script(eras=("legacy",))) as serving:
        server = http_server_definition("one", serving.url)
        async with McpIntegrationSection(servers=[server], session=session) as section:
            before = serving.hits
            result = await acall(section, "add", a="one")
            assert (result.success, result.code) == (False, "invalid_arguments")
            assert "/a" in result.message
            assert serving.hits == before
            assert last_event(session).result == result


@pytest.mark.promise("MCP-FAILURE-TIMEOUT")
def test_a_time_out_is_a_result_and_leaves_its_event() -> None:
    session = Session()
    server = scripted(call=0.3, faults=(Hang(When(name="add")),))
    with McpIntegrationSection(servers=[server], session=session) as section:
        result = call(section, "add", a=1, b=2)
        assert (result.success, result.code) == (False, "timeout")
        assert isinstance(last_event(session).outcome, TimedOut)
        assert last_event(session).duration < 5
        cancelled = call(section, "stats", until_cancelled=1)
        assert structured(cancelled)["cancelled"] == 1, "the server was told"


@pytest.mark.promise("MCP-FAILURE-CRASH")
def test_a_server_that_crashes_at_once_is_an_error_with_its_words_and_leaves_no_process() -> None:
    server = scripted(faults=(DeadOnArrival(stderr="no licence found"),))
    with quick_pool() as pool:
        section = McpIntegrationSection(servers=[server], session=Session(), pool=pool)
        with pytest.raises(McpConnectionError, match="no licence found") as raised:
            section.connect()
        assert raised.value.server_name == "one"
        assert zombies() == []
        assert children_running("outfitter.testing.stdio_server") == []


@pytest.mark.promise("MCP-FAILURE-CRASH")
def test_a_server_that_keeps_crashing_rests_and_says_so() -> None:
    server = scripted(faults=(Crash(When(name="add")),))
    session = Session()
    with quick_pool() as pool, McpIntegrationSection(servers=[server], session=session, pool=pool) as section:
        codes = [call(section, "add", a=1, b=2).code for _ in range(3)]
        assert codes[-1] == "upstream_down"
        assert not section.connected
        outcome = last_event(session).outcome
        assert isinstance(outcome, Unavailable)
        assert outcome.retry_after is not None


@pytest.mark.promise("B13")
@pytest.mark.parametrize(
    ("tool", "fault"),
    [
        ("fail", None),
        ("rpc_error", None),
        ("add", Hang(When(name="add"))),
        ("add", Crash(When(name="add"))),
        ("add", Garbage(When(name="add"))),
    ],
)
def test_a_failure_restores_the_session_once_and_leaves_one_event(tool: str, fault: object) -> None:
    session = Session()
    session[Note].append(Note("before"))
    server = scripted(call=0.3, faults=(fault,) if fault else ())
    with McpIntegrationSection(servers=[server], session=session) as section:
        bridged = tool_of(section, tool)

        def writing(params: object, *, context: ToolContext) -> object:
            context.session[Note].append(Note("during"))
            return bridged.handler(params, context=context)

        wrapped = replace(bridged, handler=writing, async_handler=None)
        result = execute(wrapped, {"a": 1, "b": 2}, context=ToolContext(session=session))
    assert not result.success
    assert session[Note].all() == (Note("before"),)
    assert len(session[ToolInvoked].all()) == 1


@pytest.mark.promise("BRIDGE-DEADLINE")
def test_the_deadline_of_the_caller_bounds_a_call() -> None:
    with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        context = ToolContext(deadline=Deadline.after(0.3), budget=BudgetTracker(Budget(max_tool_calls=2)))
        result = execute(tool_of(section, "sleep"), {"seconds": 20}, context=context)
        assert result.code == "timeout"
        assert execute(tool_of(section, "echo"), {}, context=context).code == "timeout"


@pytest.mark.promise("BRIDGE-DEADLINE")
def test_progress_keeps_a_call_alive_up_to_the_total() -> None:
    with McpIntegrationSection(servers=[scripted(call=0.6)], session=Session()) as section:
        assert call(section, "progress", n=5, seconds=0.3).success


@pytest.mark.promise("BRIDGE-COMPENSATE")
def test_a_failed_foreign_call_can_be_undone_by_a_tool_of_ours() -> None:
    undone: list[object] = []
    undo = Tool[None, None]("undo", "Undoes it", lambda: undone.append(1))
    with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        tool = replace(tool_of(section, "fail"), compensate=replace(undo, arguments=tool_of(section, "fail").params))
        assert "undone by 'undo'" in execute(tool, {}).message
    assert undone


@pytest.mark.anyio
async def test_an_error_of_the_loop_itself_is_told() -> None:
    async with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        refused = execute(tool_of(section, "echo"), {})
        assert (refused.success, refused.code) == (False, "mcp_connection")
        assert "a blocking call from the loop" in refused.message
        with pytest.raises(OutfitterError, match="blocking call"):
            section.disconnect()
        result = await aexecute(tool_of(section, "echo"), {})
        assert result.success
        assert isinstance(result.value, dict)
    assert isinstance(Done(result).result.raw, dict)
