"""Clients that say something else of themselves each time: they do not get ever more connections to a server."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from outfitter.catalog import MCPServer
from outfitter.testing import Script, serve_http, stdio_server
from outfitter.upstream import Message
from tests.gateway.kit import META, MODERN, Raw, agent, gateway, raw
from tests.gateway.watched import until

pytestmark = pytest.mark.anyio
MOST = 16


def declaring(number: int, **arguments: Any) -> Message:  # noqa: ANN401 - any JSON value
    """The parameters of a call by a client that nobody else is like."""
    capabilities: Message = {"experimental": {f"made-up-{number}": {}}}
    meta: Message = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": capabilities}
    return {"arguments": arguments, "_meta": meta}


async def call(http: Raw, number: int, name: str = "x_echo", **arguments: Any) -> Any:  # noqa: ANN401 - any JSON value
    return (await http.modern("tools/call", {"name": name, **declaring(number, **arguments)}))[1]


@pytest.mark.promise("LINES-BOUNDED")
async def test_a_client_that_changes_its_capabilities_gets_only_so_many_connections() -> None:
    async with (
        serve_http(Script("x", eras=("legacy",))) as served,
        gateway(agent("a", MCPServer.http("x", served.url)), agent("b", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
        raw(running.url("b")) as other,
    ):
        assert "hi" in str(await call(other, 0, text="hi"))
        (kept,) = running.desk.exchange.lines()
        for number in range(3 * MOST):
            for _ in range(2):
                assert "hi" in str(await call(http, number, text="hi")), number
            assert len(running.desk.exchange.lines()) <= MOST + 1
        assert len(running.desk.exchange.pool.connections()) <= MOST + 1
        await until(lambda: served.ledger.listeners <= MOST + 1)
        assert kept in running.desk.exchange.lines(), "another agent's stays"
        made = served.ledger.requests["initialize"]
        assert "hi" in str(await call(http, 3 * MOST - 1, text="hi"))
        assert "hi" in str(await call(other, 0, text="hi"))
        assert served.ledger.requests["initialize"] == made, "those that were used last are still there"
        assert "hi" in str(await call(http, 1, text="hi")), "one that had to go is made again"


@pytest.mark.promise("LINES-BOUNDED")
async def test_connections_in_use_are_not_taken_away() -> None:
    async with (
        serve_http(Script("x", eras=("legacy",))) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
    ):
        answers: list[Any] = []

        async def sleep(number: int) -> None:
            answers.append(await call(http, number, "x_sleep", seconds=2))

        async with anyio.create_task_group() as group:
            for number in range(MOST):
                group.start_soon(sleep, number)
            await until(lambda: served.ledger.requests["tools/call"] == MOST)
            refused = await call(http, MOST, text="hi")
            assert "error" in refused
        assert [answer["result"]["structuredContent"] for answer in answers] == [{"slept": 2.0}] * MOST
        assert "hi" in str(await call(http, MOST, text="hi")), "there is room again"


@pytest.mark.promise("LINES-BOUNDED")
async def test_a_program_that_had_to_make_room_is_ended() -> None:
    async with gateway(agent("a", stdio_server(Script("x")))) as running, raw(running.url("a")) as http:
        assert "hi" in str(await call(http, 0, text="hi"))
        (first,) = running.desk.exchange.lines()
        for number in range(1, MOST + 1):
            assert "hi" in str(await call(http, number, text="hi"))
        assert first not in running.desk.exchange.lines()
        await until(lambda: first.connection.agreement is None)
        assert "hi" in str(await call(http, 0, text="hi"))


@pytest.mark.promise("LINES-BOUNDED")
async def test_capabilities_that_nobody_could_mean_are_refused() -> None:
    long: Message = {"experimental": {"x" * 20_000: {}}}
    async with (
        serve_http(Script("x")) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
    ):
        meta: Message = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": long}
        assert (await http.modern("tools/list", {"_meta": meta}))[0] == 400
        params: Message = {"protocolVersion": "2025-11-25", "capabilities": long, "clientInfo": {}}
        _, answer, headers = await http.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert answer["error"]["code"] == -32602
        assert "mcp-session-id" not in {name.lower() for name in headers}
        assert not running.desk.exchange.lines()
