"""The link kit: the same promises on every transport and in both eras."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from outfitter.catalog import TimeLimits
from outfitter.errors import ProtocolViolation, UpstreamError, UpstreamTimeout
from outfitter.testing import SLOPPY_TOOLS, EndlessCursor, Hang, Script, When
from outfitter.upstream import Era, Message, Pool, State
from tests.upstream.stage import ERAS, QUICK, TRANSPORTS, Answering, connected, on_stage

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("transport", TRANSPORTS),
    pytest.mark.parametrize("era", ERAS),
]
SHORT = TimeLimits(call=0.3, total=5.0)


def script(era: str, **changes: object) -> Script:
    return replace(Script(eras=(Era(era).value,)), **changes)


@pytest.mark.promise("LINK-ERA")
async def test_the_link_opens_in_the_era_the_server_speaks(transport: str, era: str) -> None:
    async with connected(script(era), transport) as connection:
        await connection.use(lambda link: link.list_tools())
        assert connection.agreement is not None
        assert connection.agreement.era == era
        assert connection.agreement.instructions == "A scripted server."
        assert connection.health.state is State.READY


@pytest.mark.promise("LINK-RAW")
async def test_every_page_and_every_tool_comes_through_as_it_was_written(transport: str, era: str) -> None:
    async with connected(script(era, tools=SLOPPY_TOOLS, page_size=3), transport) as connection:
        tools = {tool["name"]: tool for tool in await connection.use(lambda link: link.list_tools())}
        assert set(tools) == {tool.name for tool in SLOPPY_TOOLS}
        assert tools["bare"]["inputSchema"] == {}
        assert tools["vendor"]["x-vendor"] == {"tier": 1}


async def test_a_call_returns_the_result_and_a_failing_tool_is_a_result_too(transport: str, era: str) -> None:
    async with connected(script(era), transport) as connection:
        echoed = await connection.use(lambda link: link.call_tool("echo", {"text": "héllo", "n": 2**60}))
        assert "héllo" in str(echoed)
        failed = await connection.use(lambda link: link.call_tool("fail", {"message": "no"}))
        assert failed["isError"] is True


async def test_an_error_answer_keeps_code_and_data_and_hurts_nobody(transport: str, era: str) -> None:
    async with connected(script(era), transport) as connection:
        arguments = {"code": -31000, "message": "mine", "data": {"a": [1]}}
        with pytest.raises(UpstreamError) as raised:
            await connection.use(lambda link: link.call_tool("rpc_error", arguments))
        assert (raised.value.rpc_code, raised.value.data) == (-31000, {"a": [1]})
        assert "x" in str(await connection.use(lambda link: link.call_tool("echo", {"text": "x"})))


@pytest.mark.promise("F06")
async def test_progress_keeps_a_call_alive_beyond_its_idle_limit(transport: str, era: str) -> None:
    seen: list[Message] = []
    limits = TimeLimits(call=1.0, total=20.0)
    async with connected(script(era), transport) as connection:
        arguments = {"n": 6, "seconds": 0.3}
        await connection.use(lambda link: link.call_tool("progress", arguments, limits=limits, on_progress=seen.append))
    assert len(seen) >= 6


@pytest.mark.promise("F05")
async def test_the_total_limit_holds_even_with_progress(transport: str, era: str) -> None:
    limits = TimeLimits(call=0.5, total=0.9)
    async with connected(script(era), transport) as connection:
        await connection.use(lambda link: link.list_tools())
        with pytest.raises(UpstreamTimeout):
            await connection.use(
                lambda link: link.call_tool(
                    "progress", {"n": 50, "seconds": 0.1}, limits=limits, on_progress=lambda _: None
                )
            )
        assert "x" in str(await connection.use(lambda link: link.call_tool("echo", {"text": "x"})))


@pytest.mark.promise("F03")
async def test_a_call_that_takes_too_long_is_cancelled_on_the_server(transport: str, era: str) -> None:
    async with connected(script(era), transport) as connection:
        with pytest.raises(UpstreamTimeout, match="no answer to tools/call"):
            await connection.use(lambda link: link.call_tool("sleep", {"seconds": 30}, limits=SHORT))
        stats = await connection.use(lambda link: link.call_tool("stats", {"until_cancelled": 1}))
        assert "cancelled" in str(stats)


async def test_cancelling_the_task_cancels_the_call_on_the_server(transport: str, era: str) -> None:
    async with connected(script(era), transport) as connection:
        started = anyio.Event()

        async def sleep() -> None:
            await connection.use(
                lambda link: link.call_tool("sleep", {"seconds": 30}, on_progress=lambda _: started.set())
            )

        async with anyio.create_task_group() as group:
            group.start_soon(sleep)
            with anyio.fail_after(10):
                await started.wait()
            group.cancel_scope.cancel()
        await connection.use(lambda link: link.call_tool("stats", {"until_cancelled": 1}))


@pytest.mark.promise("LINK-ASKED")
@pytest.mark.parametrize("what", ["elicitation", "sampling", "roots"])
async def test_what_a_server_asks_reaches_the_peer(transport: str, era: str, what: str) -> None:
    peer = Answering([])
    async with connected(script(era), transport, peer=peer) as connection:
        await connection.use(lambda link: link.call_tool("ask", {"what": what}))
    assert len(peer.asked) == 1


async def test_without_a_peer_an_elicitation_is_declined_and_the_call_ends(transport: str, era: str) -> None:
    async with connected(script(era), transport) as connection:
        try:
            answer = await connection.use(lambda link: link.call_tool("ask", {"what": "elicitation"}))
        except UpstreamError as refused:
            answer = {"error": refused.message}
        assert answer
        assert "x" in str(await connection.use(lambda link: link.call_tool("echo", {"text": "x"})))


@pytest.mark.promise("LINK-UNCROSSED")
async def test_many_calls_at_once_get_their_own_answers(transport: str, era: str) -> None:
    async with connected(script(era), transport) as connection:
        await connection.use(lambda link: link.list_tools())

        async def one(number: int) -> None:
            answer = await connection.use(lambda link: link.call_tool("echo", {"text": f"<{number}>"}))
            assert f"<{number}>" in str(answer)

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(one, number)


@pytest.mark.promise("F39")
@pytest.mark.parametrize("loop", [True, False])
async def test_a_list_that_does_not_end_is_refused(transport: str, era: str, loop: bool) -> None:
    async with connected(script(era, faults=(EndlessCursor(loop=loop),)), transport) as connection:
        with pytest.raises(ProtocolViolation, match=r"cursor twice|does not end"):
            await connection.use(lambda link: link.list_tools())
        assert "x" in str(await connection.use(lambda link: link.call_tool("echo", {"text": "x"})))


async def test_one_hanging_call_does_not_hold_up_another(transport: str, era: str) -> None:
    async with connected(script(era, faults=(Hang(When(name="add")),)), transport) as connection:

        async def hang() -> None:
            await connection.use(lambda link: link.call_tool("add", {"a": 1, "b": 2}))

        async with anyio.create_task_group() as group:
            group.start_soon(hang)
            for _ in range(5):
                assert "x" in str(await connection.use(lambda link: link.call_tool("echo", {"text": "x"})))
            group.cancel_scope.cancel()


async def test_resources_prompts_and_completion_come_through(transport: str, era: str) -> None:
    async with connected(script(era), transport) as connection:
        resources = await connection.use(lambda link: link.list_all("resources/list", "resources"))
        assert [resource["uri"] for resource in resources] == ["test://greeting", "test://numbers"]
        read = await connection.use(lambda link: link.request("resources/read", {"uri": "test://greeting"}))
        assert read["contents"][0]["text"] == "hello"
        prompt = await connection.use(
            lambda link: link.request("prompts/get", {"name": "greet", "arguments": {"who": "you"}})
        )
        assert "Say hello to you." in str(prompt)
        asked = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "wor"}}
        completed = await connection.use(lambda link: link.request("completion/complete", asked))
        assert completed["completion"]["values"] == ["world", "work"]


@pytest.mark.promise("LINK-CHANGES")
async def test_a_changed_list_is_heard_of(transport: str, era: str) -> None:
    heard = anyio.Event()

    def hear(message: Message) -> None:
        if message["method"] == "notifications/tools/list_changed":
            heard.set()

    async with on_stage(script(era), transport) as server, Pool(patience=QUICK) as pool:
        connection = pool.connect(server, on_notice=hear)
        if transport == "http" or era == "modern":
            await connection.use(lambda link: link.call_tool("stats", {"until_listeners": 1}))
        await connection.use(lambda link: link.call_tool("touch", {"list": "tools"}))
        with anyio.fail_after(10):
            await heard.wait()
