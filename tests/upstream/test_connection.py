"""A server kept usable: restarts, lost sessions, rest after failure, sharing, and the face for threads."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from outfitter.catalog import MCPServer, TimeLimits
from outfitter.errors import NeedsAuth, OutfitterError, ProtocolViolation, UpstreamDown, UpstreamLost
from outfitter.testing import (
    Crash,
    DeadOnArrival,
    Garbage,
    Reset,
    Script,
    SessionLoss,
    SlowStart,
    Status,
    When,
    serve_http,
    stdio_server,
)
from outfitter.upstream import Connection, Link, Message, Patience, Pool, State, SyncPool, connect_all, share_key
from tests.upstream.stage import QUICK, armed, connected, on_stage

pytestmark = pytest.mark.anyio
ONCE = When(name="add", times=1)


async def echo(link: Link) -> Message:
    return await link.call_tool("echo", {"text": "healthy"})


async def add(link: Link) -> Message:
    return await link.call_tool("add", {"a": 1, "b": 2})


async def is_healthy(connection: Connection) -> bool:
    return "healthy" in str(await connection.use(echo))


@pytest.mark.promise("F02")
async def test_a_process_that_is_killed_in_a_call_is_named_and_started_again() -> None:
    async with connected(Script(faults=(Crash(ONCE, stderr="out of luck"),)), "stdio") as connection:
        with pytest.raises(UpstreamLost, match="SIGKILL") as raised:
            await connection.use(add)
        assert raised.value.may_have_run
        assert await is_healthy(connection)
        assert connection.health.state is State.READY


@pytest.mark.promise("F01")
@pytest.mark.parametrize("at", ["request", "headers", "body"])
async def test_a_reset_connection_loses_one_call_and_is_not_repeated(at: str) -> None:
    fault = Reset(ONCE, at=at)  # pyright: ignore[reportArgumentType]
    async with serve_http(Script(eras=("modern",), faults=(fault,))) as served, Pool(patience=QUICK) as pool:
        connection = pool.connect(armed(MCPServer.http("scripted", served.url)))
        with pytest.raises(UpstreamLost) as raised:
            await connection.use(add)
        assert raised.value.may_have_run
        assert await is_healthy(connection)


@pytest.mark.promise("F13")
async def test_a_lost_session_costs_one_handshake_and_no_call() -> None:
    fault = SessionLoss(When(name="echo", after=1, times=1))
    async with connected(Script(eras=("legacy",), faults=(fault,)), "http") as connection:
        assert await is_healthy(connection)
        assert await is_healthy(connection)
        assert await is_healthy(connection)


async def test_many_calls_that_lose_the_session_together_make_one_handshake() -> None:
    script = Script(eras=("legacy",), faults=(SessionLoss(When(name="echo", after=1, times=1)),))
    async with serve_http(script) as served, Pool(patience=QUICK) as pool:
        connection = pool.connect(armed(MCPServer.http("scripted", served.url)))
        assert await is_healthy(connection)
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(is_healthy, connection)
        assert await is_healthy(connection)


@pytest.mark.promise("F07")
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("text", ["not json", '{"jsonrpc": "2.0", "id": ', "\ufeff[]", "<html>gone</html>"])
async def test_garbage_is_quoted_and_the_next_call_works(transport: str, text: str) -> None:
    async with connected(Script(faults=(Garbage(ONCE, text=text),)), transport) as connection:
        with pytest.raises((ProtocolViolation, UpstreamLost)):
            await connection.use(add)
        assert await is_healthy(connection)


@pytest.mark.promise("F17")
@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_wants_other_credentials_is_not_down(status: int) -> None:
    async with connected(Script(faults=(Status(When(name="add"), code=status),)), "http") as connection:
        with pytest.raises(NeedsAuth):
            await connection.use(add)
        assert connection.health.state is State.NEEDS_AUTH
        with pytest.raises(NeedsAuth, match="tried again in"):
            await connection.use(echo)


@pytest.mark.promise("LINK-STATES")
async def test_a_server_that_cannot_start_is_tried_rested_and_told_with_its_own_words() -> None:
    async with connected(Script(faults=(DeadOnArrival(stderr="no licence found"),)), "stdio") as connection:
        with pytest.raises(OutfitterError, match="no licence found"):
            await connection.use(echo)
        assert connection.health.state is State.DOWN
        with pytest.raises(UpstreamDown) as raised:
            await connection.use(echo)
        assert 0 < raised.value.retry_after <= QUICK.cooldown


async def test_after_its_rest_a_server_is_tried_again_and_comes_back() -> None:
    patience = Patience(tries=1, first_wait=0.01, longest_wait=0.01, cooldown=0.05)
    script = Script(faults=(Status(When("server/discover", times=1), code=503),))
    async with serve_http(script) as served, Pool(patience=patience) as pool:
        connection = pool.connect(armed(MCPServer.http("scripted", served.url)))
        with anyio.fail_after(20):
            while connection.health.state is not State.READY:
                try:
                    await connection.use(echo)
                except OutfitterError:
                    await anyio.sleep(0.02)
        assert await is_healthy(connection)


@pytest.mark.promise("F14")
async def test_one_dead_server_of_five_disturbs_no_other() -> None:
    async with on_stage(Script(), "http") as good, Pool(patience=QUICK) as pool:
        dead = armed(MCPServer.http("dead", "http://127.0.0.1:9/mcp"))
        found = await connect_all(pool, {"a": good, "b": dead, "c": good, "d": UpstreamDown("no key", retry_after=1)})
        assert [isinstance(found[alias], Connection) for alias in "abcd"] == [True, False, True, False]
        assert "127.0.0.1" in str(found["b"])


async def test_ten_slow_servers_take_the_time_of_one() -> None:
    slow = Script(faults=(SlowStart(1.0),))
    servers = {f"s{n}": armed(replace(stdio_server(slow, name=f"s{n}"), shareable=False)) for n in range(4)}
    finished: list[str] = []
    async with Pool(patience=QUICK) as pool:
        start = anyio.current_time()
        await connect_all(pool, servers, lambda alias, _: finished.append(alias))
        assert anyio.current_time() - start < 4 * 1.0 + 3
    assert sorted(finished) == sorted(servers)


@pytest.mark.promise("POOL-SHARES")
async def test_equal_servers_share_one_process_and_different_ones_do_not() -> None:
    definition = stdio_server(Script())
    other = replace(definition, env={"LANG": "C"})
    async with Pool(patience=QUICK) as pool:
        connections = [pool.connect(armed(replace(definition, name=f"alias-{n}"))) for n in range(100)]
        assert len({id(connection) for connection in connections}) == 1
        assert pool.connect(armed(other)) is not connections[0]
        assert pool.connect(armed(replace(definition, shareable=False))) is not connections[0]
        assert await is_healthy(connections[50])
    assert share_key(armed(definition)) == share_key(armed(replace(definition, name="x")))
    url = "http://127.0.0.1:1/mcp"
    assert share_key(armed(MCPServer.http("a", url), X_A="1")) != share_key(armed(MCPServer.http("a", url), X_A="2"))


async def test_an_idle_process_ends_and_is_started_again_when_needed() -> None:
    async with on_stage(Script(), "stdio") as server, Pool(patience=QUICK, idle_seconds=0.2) as pool:
        connection = pool.connect(server)
        assert await is_healthy(connection)
        with anyio.fail_after(20):
            while connection.health.state is not State.CONFIGURED:  # noqa: ASYNC110 - a state, not an event
                await anyio.sleep(0.02)
        assert await is_healthy(connection)


@pytest.mark.promise("F37")
async def test_a_pool_opened_here_can_be_used_and_cancelled_elsewhere() -> None:
    async with connected(Script(), "stdio") as connection:
        async with anyio.create_task_group() as group:
            group.start_soon(connection.use, echo)
        with anyio.move_on_after(0.05):
            await connection.use(lambda link: link.call_tool("sleep", {"seconds": 20}))
        assert await is_healthy(connection)


@pytest.mark.promise("F38")
def test_threads_use_one_background_loop() -> None:
    server = armed(stdio_server(Script()))
    with SyncPool() as pool, ThreadPoolExecutor(8) as threads:

        def call(number: int) -> Message:
            return pool.call_tool(server, "echo", {"text": f"<{number}>"})

        answers = list(threads.map(call, range(50)))
        assert all(f"<{number}>" in str(answer) for number, answer in enumerate(answers))
        assert "echo" in {tool["name"] for tool in pool.list_tools(server)}
    with pytest.raises(UpstreamDown, match="closed"):
        pool.list_tools(server)


@pytest.mark.promise("F38")
async def test_a_blocking_call_inside_a_running_loop_works() -> None:
    server = armed(stdio_server(Script()))
    with SyncPool() as pool:
        assert "healthy" in str(pool.use(server, echo))


@pytest.mark.promise("F38")
def test_a_blocking_call_from_the_background_loop_is_refused_and_does_not_hang() -> None:
    server = armed(stdio_server(Script()))
    with SyncPool() as pool:

        async def inside(_link: Link) -> str:
            try:
                pool.list_tools(server)
            except UpstreamDown as refused:
                return f"{threading.current_thread().name}: {refused.message}"
            return "not refused"

        assert "a blocking call from the loop" in pool.use(server, inside)


async def test_a_call_longer_than_the_connect_limit_is_fine() -> None:
    limits = TimeLimits(connect=5.0, call=10.0, total=20.0)
    async with connected(Script(), "stdio", limits=limits) as connection:
        await connection.use(lambda link: link.call_tool("sleep", {"seconds": 0.3}))


@pytest.mark.promise("POOL-FORGETS")
async def test_a_pool_lets_go_of_what_nobody_uses_any_more() -> None:
    async with serve_http(Script(eras=("modern",))) as served, Pool(patience=QUICK, idle_seconds=0.05) as pool:
        first = pool.connect(armed(MCPServer.http("scripted", served.url), X_N="first"))
        for number in range(400):
            connection = pool.connect(armed(MCPServer.http("scripted", served.url), X_N=str(number)))
            if number % 40 == 0:
                assert await is_healthy(connection)
                await anyio.sleep(0.1)
        assert len(pool.connections()) < 200
        assert await is_healthy(first)


SHORT_LIVED = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    if asked["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    else:
        answer["error"] = {"code": -32601, "message": "?"}
    print(json.dumps(answer), flush=True)
    if asked["method"] == "initialize":
        sys.exit("gone again")
"""


@pytest.mark.promise("LINK-STATES")
async def test_a_server_that_dies_after_every_handshake_is_not_started_for_ever(tmp_path: Path) -> None:
    program = tmp_path / "short_lived.py"
    program.write_text(SHORT_LIVED, encoding="utf-8")
    async with Pool(patience=QUICK) as pool:
        connection = pool.connect(armed(MCPServer.stdio("short", sys.executable, (str(program),))))
        errors: list[OutfitterError] = []
        with anyio.fail_after(30):
            while not any(isinstance(error, UpstreamDown) for error in errors):
                try:
                    await connection.use(echo)
                except OutfitterError as error:
                    errors.append(error)
        assert len(errors) <= 2 * QUICK.tries
        assert "gone again" in str(errors[-1])
        assert connection.health.state is State.DOWN


@pytest.mark.promise("F27")
async def test_a_pool_closed_under_fifty_calls_ends_them_all_within_a_bound() -> None:
    ended: list[OutfitterError] = []

    async def call(connection: Connection) -> None:
        try:
            await connection.use(lambda link: link.call_tool("sleep", {"seconds": 60}))
        except OutfitterError as error:
            ended.append(error)

    async with on_stage(Script(), "stdio") as server, anyio.create_task_group() as group:
        async with Pool(patience=QUICK) as pool:
            connection = pool.connect(server)
            assert await is_healthy(connection)
            for _ in range(50):
                group.start_soon(call, connection)
            await anyio.wait_all_tasks_blocked()
            start = anyio.current_time()
        assert anyio.current_time() - start < 15
        with pytest.raises(UpstreamDown):
            pool.connect(server)
    assert len(ended) == 50
