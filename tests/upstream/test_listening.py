"""Several who hear of one shared server, a connection that is ended alone, and servers armed by themselves."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from outfitter.catalog import MCPServer
from outfitter.errors import InvalidServer, OutfitterError, UnresolvedPlaceholder, UpstreamDown, UpstreamLost
from outfitter.resolution import ArmedServer
from outfitter.testing import Crash, Script, When, stdio_server
from outfitter.upstream import Connection, Link, Message, Pool, State, arm_servers
from tests.upstream.stage import QUICK, armed, on_stage

pytestmark = pytest.mark.anyio


class Ear:
    """Remembers the changed lists it heard of."""

    def __init__(self) -> None:
        self.heard = anyio.Event()
        self.count = 0

    def __call__(self, message: Message) -> None:
        if message["method"] == "notifications/tools/list_changed":
            self.count += 1
            self.heard.set()


async def touch(connection: Connection) -> None:
    await connection.use(lambda link: link.call_tool("touch", {"list": "tools"}))


async def stats(connection: Connection, **asked: int) -> Message:
    answer = await connection.use(lambda link: link.call_tool("stats", asked))
    return answer["structuredContent"]


@pytest.mark.promise("POOL-LISTENERS")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_two_listeners_share_one_connection_and_leave_one_by_one(era: str) -> None:
    script = Script(eras=(era,))  # pyright: ignore[reportArgumentType]
    async with on_stage(script, "stdio") as server, Pool(patience=QUICK) as pool:
        connection, first, second = pool.connect(server), Ear(), Ear()
        assert pool.connect(server, on_notice=second) is connection
        stop = connection.listen_to(first)
        if era == "modern":
            await stats(connection, until_listeners=1)
        await touch(connection)
        with anyio.fail_after(10):
            await first.heard.wait()
            await second.heard.wait()
        stop()
        stop()
        second.heard = anyio.Event()
        await touch(connection)
        with anyio.fail_after(10):
            await second.heard.wait()
        assert first.count == 1


@pytest.mark.promise("POOL-LISTENERS")
async def test_who_comes_late_hears_and_the_stream_ends_with_the_last() -> None:
    async with on_stage(Script(eras=("modern",)), "http") as server, Pool(patience=QUICK) as pool:
        connection, ear = pool.connect(server), Ear()
        await touch(connection)
        stop = connection.listen_to(ear)
        await stats(connection, until_listeners=1)
        await touch(connection)
        with anyio.fail_after(10):
            await ear.heard.wait()
        stop()
        await touch(connection)
        assert ear.count == 1


@pytest.mark.promise("POOL-LISTENERS")
async def test_a_server_that_is_listened_to_is_not_idle() -> None:
    async with on_stage(Script(), "stdio") as server, Pool(patience=QUICK, idle_seconds=0.1) as pool:
        connection = pool.connect(server)
        stop = connection.listen_to(Ear())
        await touch(connection)
        await anyio.sleep(0.4)
        assert connection.health.state is State.READY
        stop()
        with anyio.fail_after(10):
            while connection.health.state is State.READY:  # noqa: ASYNC110 - a state, not an event
                await anyio.sleep(0.02)


@pytest.mark.promise("POOL-LISTENERS")
async def test_a_server_that_came_back_may_have_other_tools() -> None:
    script = Script(faults=(Crash(When(name="add", times=1)),))
    async with on_stage(script, "stdio") as server, Pool(patience=QUICK) as pool:
        connection, ear = pool.connect(server), Ear()
        connection.listen_to(ear)
        with pytest.raises(UpstreamLost):
            await connection.use(lambda link: link.call_tool("add", {"a": 1, "b": 2}))
        assert ear.count == 0
        await connection.use(lambda link: link.call_tool("echo", {}))
        assert ear.count == 1


@pytest.mark.promise("POOL-CLOSES")
async def test_one_connection_is_ended_with_its_calls_and_the_others_stay() -> None:
    one, two = (armed(stdio_server(Script(), name=name)) for name in ("one", "two"))
    async with Pool(patience=QUICK) as pool:
        closing, staying = pool.connect(one), pool.connect(_unshared(two))
        assert closing is not staying
        await staying.use(_nothing)
        began = anyio.Event()
        lost: list[OutfitterError] = []

        async def sleep_on(link: Link) -> Message:
            return await link.call_tool("sleep", {"seconds": 30}, on_progress=lambda _: began.set())

        async def wait() -> None:
            try:
                await closing.use(sleep_on)
            except OutfitterError as error:
                lost.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            with anyio.fail_after(20):
                await began.wait()
                await pool.close(closing)
        assert isinstance(lost[0], UpstreamLost)
        with pytest.raises(UpstreamDown, match="closed"):
            await closing.use(_nothing)
        await staying.use(_nothing)
        again = pool.connect(one)
        assert again is not closing
        await again.use(_nothing)


async def _nothing(_link: Link) -> None:
    """Only being connected is asked for."""


def _unshared(server: ArmedServer) -> ArmedServer:
    definition = server.planned.definition
    alone = replace(definition, value=replace(definition.value, shareable=False))
    return replace(server, planned=replace(server.planned, definition=alone))


@pytest.mark.promise("ARM-SERVERS")
def test_servers_in_code_are_armed_each_by_itself() -> None:
    good = MCPServer.http("good", "http://${HOST:-127.0.0.1}:1/mcp", headers={"Authorization": "Bearer ${TOKEN}"})
    bad = MCPServer.stdio("bad", "prog", env={"KEY": "${NOT_THERE}"})
    unsettled = MCPServer.stdio("unsettled", "prog", args_factory=lambda params: (str(params),))
    found = arm_servers([good, bad, unsettled], {"TOKEN": "s3cret-value"})
    assert isinstance(found["good"], ArmedServer)
    assert "s3cret-value" not in repr(found)
    assert isinstance(found["bad"], UnresolvedPlaceholder)
    assert "NOT_THERE" in str(found["bad"])
    assert isinstance(found["unsettled"], InvalidServer)
