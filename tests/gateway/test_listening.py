"""Which changes a client hears of: of its own servers, in either era, no more often than it can use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiohttp
import anyio
import msgspec
import pytest

from outfitter.catalog import Catalog, MCPServer
from outfitter.gateway import Seat
from outfitter.resolution import Supply, arm_each, resolve
from outfitter.testing import ListStorm, Script, serve_http
from outfitter.upstream import EventParser, Message
from tests.gateway.kit import ACCEPT, META, MODERN, Raw, Running, agent, gateway, raw

pytestmark = pytest.mark.anyio
Era = Literal["legacy", "modern"]
ERAS: tuple[Era, ...] = ("legacy", "modern")
CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


class Heard:
    """The messages of a stream, as they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._parser = EventParser()
        self._waiting: list[Any] = []

    async def next(self, method: str | None = None) -> Any:  # noqa: ANN401 - JSON
        """The next message, or the next with this method."""
        async with asyncio.timeout(20):
            while True:
                while self._waiting:
                    message = self._waiting.pop(0)
                    if method is None or message.get("method") == method:
                        return message
                piece = await self._response.content.readany()
                if not piece:
                    return None
                self._waiting += [msgspec.json.decode(event.data) for event in self._parser.feed(piece) if event.data]


@asynccontextmanager
async def hearing(http: Raw, era: Era, **wanted: object) -> AsyncGenerator[Heard]:
    """What a client of an era hears by itself."""
    if era == "legacy":
        headers = {**http.headers, "accept": "text/event-stream"}
        async with http.http.get(http.url, headers=headers) as response:
            yield Heard(response)
        return
    meta: Message = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
    params: Message = {"_meta": meta, "notifications": wanted}
    body: Message = {"jsonrpc": "2.0", "id": "ear", "method": "subscriptions/listen", "params": params}
    headers = {**ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": "subscriptions/listen"}
    async with http.http.post(http.url, json=body, headers=headers) as response:
        heard = Heard(response)
        acknowledged = await heard.next()
        assert acknowledged["params"]["notifications"] == wanted
        yield heard


async def touch(http: Raw, **what: str) -> None:
    status, _ = await http.modern("tools/call", {"name": "touch", "arguments": what})
    assert status == 200


@pytest.mark.promise("GW-SUBSCRIBE")
@pytest.mark.parametrize("upstream", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_subscribed_resource_is_told_across_eras(era: Era, upstream: Era) -> None:
    async with (
        serve_http(Script("x", eras=(upstream,))) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a", "x")) as http,
        raw(running.url("a", "x")) as other,
    ):
        uri = "test://numbers"
        if era == "legacy":
            await http.handshake()
            assert (await http.legacy("resources/subscribe", {"uri": uri}))[1]["result"] == {}
        async with hearing(http, era, resourceSubscriptions=[uri]) as heard:
            await touch(other, uri="test://greeting")
            await touch(other, uri=uri)
            told = await heard.next(UPDATED)
            assert told["params"]["uri"] == uri
            if era == "modern":
                assert told["params"]["_meta"] == {f"{META}subscriptionId": "ear"}
        if era == "legacy":
            assert (await http.legacy("resources/unsubscribe", {"uri": uri}))[1]["result"] == {}
        if upstream == "legacy":
            with anyio.fail_after(10):
                while not served.ledger.requests["resources/unsubscribe"]:  # noqa: ASYNC110 - the peer's own count
                    await anyio.sleep(0.01)
            assert served.ledger.requests["resources/subscribe"] == 1


@pytest.mark.promise("GW-SUBSCRIBE")
async def test_one_who_stops_listening_does_not_stop_the_others() -> None:
    async with (
        serve_http(Script("x", eras=("legacy",))) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a", "x")) as one,
        raw(running.url("a", "x")) as two,
    ):
        for http in (one, two):
            await http.handshake()
            await http.legacy("resources/subscribe", {"uri": "test://numbers"})
        assert served.ledger.requests["resources/subscribe"] == 1
        await one.legacy("resources/unsubscribe", {"uri": "test://numbers"})
        assert served.ledger.requests["resources/unsubscribe"] == 0
        async with hearing(two, "legacy") as heard:
            await two.legacy("tools/call", {"name": "touch", "arguments": {"uri": "test://numbers"}})
            assert (await heard.next(UPDATED))["params"]["uri"] == "test://numbers"


@pytest.mark.promise("GW-SUBSCRIBE")
async def test_a_resource_that_nobody_has_is_not_granted() -> None:
    async with (
        serve_http(Script("x")) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
    ):
        await http.handshake()
        _, answer = await http.legacy("resources/subscribe", {"uri": "other://nowhere"})
        assert answer["error"]["code"] == -32002
        assert served.ledger.requests["resources/subscribe"] == 0


@pytest.mark.promise("GW-SUBSCRIBE")
@pytest.mark.parametrize("era", ERAS)
async def test_changes_of_all_servers_come_on_one_stream(era: Era) -> None:
    async with serve_http(Script("x", eras=("legacy",))) as x, serve_http(Script("y", eras=("modern",))) as y:
        both = agent("a", MCPServer.http("x", x.url), MCPServer.http("y", y.url))
        async with gateway(both) as running, raw(running.url("a")) as http:
            if era == "legacy":
                await http.handshake()
            async with hearing(http, era, toolsListChanged=True) as heard, raw(running.url("a")) as other:
                for server in (x, y):
                    with anyio.fail_after(10):
                        while not server.ledger.listeners:  # noqa: ASYNC110 - the peer's own count
                            await anyio.sleep(0.01)
                for name in ("x_touch", "y_touch"):
                    await other.modern("tools/call", {"name": name, "arguments": {"list": "tools"}})
                    assert (await heard.next())["method"] == CHANGED


@pytest.mark.promise("G19")
async def test_a_storm_of_changes_is_one_refresh_a_second_and_holds_nobody_up() -> None:
    async with (
        serve_http(Script("x", eras=("modern",), faults=(ListStorm(2000),))) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a", "x")) as http,
    ):
        begun = anyio.current_time()
        async with hearing(http, "modern", toolsListChanged=True) as heard:
            await heard.next(CHANGED)
            for _ in range(20):
                status, _ = await http.modern("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
                assert status == 200
            await http.modern("tools/list")
        seconds = anyio.current_time() - begun
        assert served.ledger.requests["tools/list"] <= seconds + 2
        assert served.ledger.requests["tools/call"] == 20


def make_new(running: Running, *servers: MCPServer) -> None:
    """Give the agent other servers while the gateway runs."""
    catalog = Catalog(agents={"a": agent("a", *servers)})

    def make(name: str) -> Seat:
        plan = resolve(name, catalog)
        return Seat(plan, arm_each(plan, Supply()))

    running.desk.seats.swap(make)


@pytest.mark.promise("GATEWAY-FOLLOWS")
@pytest.mark.parametrize("era", ERAS)
async def test_a_new_plan_is_told_to_those_who_listen(era: Era) -> None:
    async with (
        serve_http(Script("x")) as x,
        serve_http(Script("y")) as y,
        gateway(agent("a", MCPServer.http("x", x.url))) as running,
        raw(running.url("a")) as http,
    ):
        if era == "legacy":
            await http.handshake()
        async with hearing(http, era, toolsListChanged=True) as heard, raw(running.url("a")) as other:
            make_new(running, MCPServer.http("y", y.url))
            assert (await heard.next())["method"] == CHANGED
            _, listed = await other.modern("tools/list")
            assert {tool["name"].partition("_")[0] for tool in listed["result"]["tools"]} == {"y"}


@pytest.mark.promise("GATEWAY-FOLLOWS")
async def test_a_call_under_way_ends_on_the_plan_it_began_with() -> None:
    async with (
        serve_http(Script("x")) as x,
        serve_http(Script("y")) as y,
        gateway(agent("a", MCPServer.http("x", x.url))) as running,
        raw(running.url("a")) as http,
    ):
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await http.modern("tools/call", {"name": "x_sleep", "arguments": {"seconds": 0.5}}))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            with anyio.fail_after(10):
                while not x.ledger.requests["tools/call"]:  # noqa: ASYNC110 - the peer's own count
                    await anyio.sleep(0.01)
            make_new(running, MCPServer.http("y", y.url))
            async with raw(running.url("a")) as other:
                _, answer = await other.modern("tools/call", {"name": "x_echo", "arguments": {}})
                assert answer["error"]["message"] == "Unknown tool: x_echo"
        assert answers[0][1]["result"]["structuredContent"] == {"slept": 0.5}


@pytest.mark.promise("GATEWAY-DRAINS")
@pytest.mark.parametrize("era", ERAS)
async def test_listening_ends_by_itself_when_the_gateway_ends(era: Era) -> None:
    async with (
        serve_http(Script("x")) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
    ):
        if era == "legacy":
            await http.handshake()
        async with hearing(http, era, toolsListChanged=True) as heard:
            running.desk.close()
            last = await heard.next()
            assert last is None if era == "legacy" else last["result"]["resultType"] == "complete"
