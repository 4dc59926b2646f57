"""One pool for many: sections, sessions, threads and loops share connections; one name means one server."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from subprocess import run
from threading import Event

import anyio
import anyio.to_thread
import pytest

from outfitter.bridge import McpConnection, McpConnectionPool, McpIntegrationSection
from outfitter.calls import ToolInvoked, ToolResult
from outfitter.catalog import TimeLimits
from outfitter.errors import McpConnectionError, McpError, McpTimeoutError, McpToolError
from outfitter.session import Session
from outfitter.testing import Hang, Script, When, http_server_definition, serve_http
from outfitter.tools import ResourceRegistry, Tool, ToolContext, aexecute, execute
from outfitter.upstream import State
from tests.bridge.kit import acall, call, quick_pool, scripted, structured, tool_of, when_told
from tests.upstream.real import children_running

SERVER = "outfitter.testing.stdio_server"


@pytest.mark.promise("BRIDGE-SHARING")
def test_sections_and_sessions_share_one_process_until_the_last_leaves() -> None:
    sessions = [Session(), Session()]
    with McpConnectionPool() as pool:
        first, second = (McpIntegrationSection(servers=[scripted()], session=one, pool=pool) for one in sessions)
        with first:
            second.connect()
            assert len(children_running(SERVER)) == 1
            assert call(first, "echo", text="a").success
            assert call(second, "echo", text="b").success
        assert second.connected
        assert call(second, "echo", text="c").success
        second.disconnect()
        assert children_running(SERVER) == []
    assert [len(session[ToolInvoked].all()) for session in sessions] == [1, 2]


@pytest.mark.promise("BRIDGE-SHARING")
def test_equal_servers_of_two_names_share_and_unshareable_ones_do_not() -> None:
    same = [replace(scripted(), name=name) for name in ("a", "b")]
    alone = replace(scripted(), name="c", shareable=False)
    with McpConnectionPool() as pool:
        one = McpIntegrationSection(servers=[*same, alone], session=Session(), pool=pool)
        two = McpIntegrationSection(servers=[alone], session=Session(), pool=pool)
        with one, two:
            assert len(children_running(SERVER)) == 3
        assert children_running(SERVER) == []


@pytest.mark.promise("B15")
def test_one_name_with_two_definitions_is_an_error_and_equal_ones_are_one_connection() -> None:
    other = replace(scripted(), env={"LANG": "C"})
    narrowed = replace(scripted(), tools=replace(scripted().tools, include=("add",)))
    with McpConnectionPool() as pool:
        first = McpIntegrationSection(servers=[scripted()], session=Session(), pool=pool)
        second = McpIntegrationSection(servers=[other], session=Session(), pool=pool)
        third = McpIntegrationSection(servers=[narrowed], session=Session(), pool=pool)
        with first, third:
            with pytest.raises(McpConnectionError, match="another server of this name"):
                second.connect()
            assert [tool.tool for tool in third.tools()] == ["add"]
            assert len(pool.connections()) == 1
            assert call(first, "echo").success
        second.connect()
        assert second.connected
        second.disconnect()


@pytest.mark.promise("BRIDGE-POOL-RESOURCE")
def test_a_handler_finds_the_pool_and_talks_to_a_server() -> None:
    def handle(_: None, *, context: ToolContext) -> ToolResult[dict[str, object]]:
        pool = context.resources.get(McpConnectionPool)
        assert pool is not None
        assert pool.get("nobody") is None
        one = pool.get("one")
        assert one is not None
        return ToolResult.ok(one.call_tool("add", {"a": 2, "b": 2})["structuredContent"])

    with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        context = ToolContext(resources=ResourceRegistry(section.resources()))
        assert execute(Tool[None, None]("mine", "Uses the pool", handle), context=context).value == {"sum": 4}


@pytest.mark.promise("BRIDGE-POOL-RESOURCE")
def test_a_connection_does_what_a_server_can_and_says_what_it_cannot() -> None:
    server = scripted(call=0.5, faults=(Hang(When(name="add")),))
    with McpConnectionPool() as pool:
        one = pool.connect([server])["one"]
        assert isinstance(one, McpConnection)
        assert (one.server, one.state) == (server, State.READY)
        assert "echo" in [tool["name"] for tool in one.list_tools()]
        assert one.read_resource("test://greeting")["contents"][0]["text"] == "hello"
        assert one.list_resources()
        assert one.list_resource_templates() is not None
        assert one.list_prompts()[0]["name"] == "greet"
        assert "world" in str(one.get_prompt("greet", {"who": "world"}))
        with pytest.raises(McpToolError) as refused:
            one.call_tool("rpc_error", {"code": -32602, "message": "no", "data": 1})
        assert refused.value.rpc_error == {"code": -32602, "message": "no", "data": 1}
        with pytest.raises(McpTimeoutError) as late:
            one.call_tool("add", {"a": 1, "b": 1})
        assert (late.value.server_name, late.value.timeout) == ("one", 0.5)
        with pytest.raises(McpError):
            one.read_resource("test://nothing")
        assert one.call_tool("sleep", {"seconds": 0.7}, limits=TimeLimits.of(call=20))
        pool.release([one])
        assert pool.get("one") is None
        with pytest.raises(McpConnectionError, match="closed"):
            one.list_tools()
    with pytest.raises(McpConnectionError, match="not open"):
        pool.connect([server])


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-LOOPS")
async def test_every_call_has_an_asynchronous_twin() -> None:
    async with McpConnectionPool() as pool:
        one = (await pool.aconnect([scripted()]))["one"]
        assert isinstance(one, McpConnection)
        assert await one.alist_tools()
        assert (await one.acall_tool("add", {"a": 1, "b": 1}))["structuredContent"] == {"sum": 2}
        assert await one.alist_resources()
        assert await one.alist_resource_templates() is not None
        assert await one.aread_resource("test://greeting")
        assert await one.alist_prompts()
        assert await one.aget_prompt("greet", {"who": "you"})
        with pytest.raises(McpConnectionError, match="blocking call"):
            one.list_tools()
        assert await anyio.to_thread.run_sync(one.list_tools), "a worker thread may block: the loop is free"
        await pool.arelease([one])
        assert pool.connections() == ()


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-LOOPS")
async def test_a_section_may_be_closed_by_another_task_than_the_one_that_opened_it() -> None:
    section = McpIntegrationSection(servers=[scripted()], session=Session())
    async with anyio.create_task_group() as group:
        group.start_soon(section.aconnect)
    assert section.connected
    async with anyio.create_task_group() as group:
        group.start_soon(section.adisconnect)
    assert not section.connected


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-LOOPS")
async def test_two_connects_at_once_connect_once() -> None:
    with quick_pool() as pool:
        section = McpIntegrationSection(servers=[scripted()], session=Session(), pool=pool)
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(section.aconnect)
        (held,) = pool.connections()
        assert held.holders == 1
        await section.adisconnect()
        assert children_running(SERVER) == []


@pytest.mark.promise("BRIDGE-LOOPS")
def test_threads_and_other_loops_use_a_background_pool() -> None:
    with McpIntegrationSection(servers=[scripted()], session=Session()) as section, ThreadPoolExecutor(8) as threads:

        def add(number: int) -> str:
            return call(section, "add", a=number, b=1).message

        answers = list(threads.map(add, range(40)))
        assert answers == [f'{{"sum": {n + 1}}}' for n in range(40)]

        async def from_here() -> list[str]:
            results = await asyncio.gather(*(acall(section, "add", a=n, b=2) for n in range(10)))
            return [result.message for result in results]

        assert asyncio.run(from_here()) == [f'{{"sum": {n + 2}}}' for n in range(10)]


@pytest.mark.promise("BRIDGE-LOOPS")
def test_a_loop_that_ends_takes_its_connections_along_and_another_can_follow() -> None:
    section = McpIntegrationSection(servers=[scripted()], session=Session())

    async def connect_and_forget() -> None:
        await section.aconnect()
        assert (await acall(section, "echo")).success

    asyncio.run(connect_and_forget())
    assert not section.connected
    assert children_running(SERVER) == []
    asyncio.run(connect_and_forget())
    with section:
        assert call(section, "echo").success


@pytest.mark.promise("BRIDGE-CANCEL")
def test_cancelling_reaches_the_server_across_loops() -> None:
    session = Session()
    with McpIntegrationSection(servers=[scripted()], session=session) as section:

        async def cancelled() -> None:
            began = asyncio.Event()
            context = ToolContext(session=session, report=when_told(began.set))
            task = asyncio.create_task(aexecute(tool_of(section, "sleep"), {"seconds": 60}, context=context))
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancelled())
        assert structured(call(section, "stats", until_cancelled=1))["cancelled"] == 1
    assert session[ToolInvoked].all()[0].result.code == "cancelled"


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-CANCEL")
async def test_cancelling_reaches_the_server_on_the_same_loop() -> None:
    async with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        began = anyio.Event()
        context = ToolContext(report=when_told(began.set))
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: aexecute(tool_of(section, "sleep"), {"seconds": 60}, context=context))
            await began.wait()
            group.cancel_scope.cancel()
        assert structured(await acall(section, "stats", until_cancelled=1))["cancelled"] == 1


@pytest.mark.promise("BRIDGE-LOOPS")
def test_closing_the_pool_during_a_call_ends_the_call() -> None:
    pool = McpConnectionPool()
    pool.open()
    began = Event()
    section = McpIntegrationSection(servers=[scripted()], session=Session(), pool=pool, connect_on_init=True)
    context = ToolContext(report=when_told(began.set))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(execute, tool_of(section, "sleep"), {"seconds": 60}, context=context)
        assert began.wait(20)
        pool.close()
        assert waiting.result(20).code in {"upstream_lost", "mcp_connection"}
    assert not section.connected
    section.disconnect()
    assert children_running(SERVER) == []


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-LOOPS")
async def test_cancelling_a_connect_leaves_nothing_behind() -> None:
    async with serve_http(Script(faults=(Hang(When(method="*")),))) as serving, McpConnectionPool() as pool:
        hanging = http_server_definition("hangs", serving.url)
        section = McpIntegrationSection(servers=[scripted(), hanging], session=Session(), pool=pool)
        with anyio.move_on_after(1.0) as scope:
            await section.aconnect()
        assert scope.cancelled_caught
        assert pool.connections() == ()
        assert children_running(SERVER) == []


@pytest.mark.anyio
@pytest.mark.promise("BRIDGE-LOOPS")
async def test_a_connect_on_a_background_loop_is_cancelled_there_too() -> None:
    with quick_pool() as pool:
        slow = scripted(faults=(Hang(When(method="tools/list")),))
        section = McpIntegrationSection(servers=[slow], session=Session(), pool=pool)
        with anyio.move_on_after(1.5) as scope:
            await section.aconnect()
        assert scope.cancelled_caught
        with anyio.fail_after(20):
            while children_running(SERVER):  # noqa: ASYNC110 - a process, not an event
                await anyio.sleep(0.02)
        assert pool.connections() == ()


FORGETFUL = """
from outfitter.bridge import McpIntegrationSection
from outfitter.session import Session
from outfitter.testing import stdio_server
section = McpIntegrationSection(servers=[stdio_server()], session=Session(), connect_on_init=True)
print(len(section.tools()))
"""


@pytest.mark.promise("BRIDGE-LIFECYCLE")
def test_a_program_that_forgets_to_disconnect_ends_all_the_same() -> None:
    ended = run(
        [sys.executable, "-W", "error", "-c", FORGETFUL], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(ended.stdout) > 5
    assert ended.stderr == ""
