"""How a client of the handshake era is answered on streams that it may leave, and who shares a server with whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiohttp
import anyio
import msgspec
import pytest

from outfitter.catalog import MCPServer
from outfitter.testing import Script, ScriptedTool, serve_http, stdio_server
from outfitter.upstream import EventParser, ServerEvent
from tests.gateway.kit import Raw, agent, gateway, raw

pytestmark = pytest.mark.anyio
EVENTS_FIRST = "text/event-stream, application/json"


@asynccontextmanager
async def asking(http: Raw, method: str, params: dict[str, Any]) -> AsyncGenerator[aiohttp.ClientResponse]:
    """The response to a request whose client prefers events."""
    http.ids += 1
    body = {"jsonrpc": "2.0", "id": http.ids, "method": method, "params": params}
    async with http.http.post(http.url, json=body, headers={**http.headers, "accept": EVENTS_FIRST}) as response:
        yield response


async def read(response: aiohttp.ClientResponse, count: int | None = None) -> tuple[list[ServerEvent], EventParser]:
    """So many events of a response, or all of them; and how far it was read."""
    parser, found = EventParser(), list[ServerEvent]()
    async with asyncio.timeout(20):
        while count is None or len(found) < count:
            piece = await response.content.readany()
            if not piece:
                break
            found += parser.feed(piece)
    return found, parser


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a peer counts."""
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - the peer's own count
            await anyio.sleep(0.01)


@pytest.mark.promise("GW-RESUME")
async def test_a_client_that_prefers_events_gets_them_with_ids() -> None:
    async with (
        serve_http(Script("x")) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a", "x")) as http,
    ):
        await http.handshake()
        async with asking(http, "tools/call", {"name": "echo", "arguments": {"text": "hi"}}) as response:
            text = await response.text()
        primer, _, answer = text.partition("\n\n")
        assert primer.splitlines() == ["id: 1-0", "retry: 500", "data: "]
        assert answer.startswith("id: 1-1\n")
        assert "hi" in answer


@pytest.mark.promise("GW-RESUME")
async def test_a_client_that_comes_back_gets_the_rest() -> None:
    async with (
        serve_http(Script("x")) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a", "x")) as http,
    ):
        await http.handshake()
        meta = {"progressToken": "p"}
        params = {"name": "progress", "arguments": {"n": 3, "seconds": 0.2}, "_meta": meta}
        async with asking(http, "tools/call", params) as response:
            _, parser = await read(response, 2)
        assert parser.last_id == "1-1"
        headers = {**http.headers, "accept": "text/event-stream", "last-event-id": "1-1"}
        async with http.http.get(http.url, headers=headers) as response:
            events, _ = await read(response)
        messages = [msgspec.json.decode(event.data) for event in events]
        assert [message.get("method") for message in messages] == ["notifications/progress"] * (len(messages) - 1) + [
            None
        ]
        assert "result" in messages[-1]
        assert served.ledger.cancelled == 0
        for unknown in ("9-1", "x", "1"):
            headers["last-event-id"] = unknown
            async with http.http.get(http.url, headers=headers) as response:
                assert response.status == 400


@pytest.mark.promise("F11")
@pytest.mark.parametrize("upstream", ["legacy", "modern"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_client_that_goes_away_cancels_its_call_within_a_second(
    era: str, upstream: Literal["legacy", "modern"]
) -> None:
    async with (
        serve_http(Script("x", eras=(upstream,))) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a", "x")) as http,
    ):
        if era == "legacy":
            await http.handshake()
        call = http.legacy if era == "legacy" else http.modern
        with anyio.move_on_after(0.5) as leaving:
            await call("tools/call", {"name": "sleep", "arguments": {"seconds": 60}})
        assert leaving.cancelled_caught
        with anyio.fail_after(1):
            while not served.ledger.cancelled:  # noqa: ASYNC110 - the peer's own count
                await anyio.sleep(0.01)


@pytest.mark.promise("GW-SHARED")
async def test_a_program_is_started_once_for_clients_of_both_eras() -> None:
    async with (
        gateway(agent("a", stdio_server(Script("x", eras=("legacy",))))) as running,
        raw(running.url("a")) as old,
        raw(running.url("a")) as new,
    ):
        await old.handshake()
        assert (await old.legacy("tools/call", {"name": "x_echo", "arguments": {}}))[0] == 200
        assert (await new.modern("tools/call", {"name": "x_echo", "arguments": {}}))[0] == 200
        assert len(running.desk.exchange.lines()) == 1


@pytest.mark.promise("GW-SHARED")
async def test_a_server_with_one_era_is_connected_once_when_that_is_known() -> None:
    async with (
        serve_http(Script("x", eras=("legacy",))) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as new,
        raw(running.url("a")) as old,
    ):
        assert (await new.modern("tools/list"))[0] == 200
        await old.handshake()
        assert (await old.legacy("tools/list"))[0] == 200
        assert served.ledger.requests["initialize"] == 1


@pytest.mark.promise("GW-SHARED")
async def test_a_line_that_nobody_uses_lets_its_server_go() -> None:
    async with (
        serve_http(Script("x", eras=("legacy",))) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
    ):
        running.desk.exchange.pool.idle_seconds = 0.2
        assert (await http.modern("tools/list"))[0] == 200
        await until(lambda: served.ledger.listeners == 1)
        await until(lambda: served.ledger.listeners == 0)
        assert (await http.modern("tools/call", {"name": "x_echo", "arguments": {}}))[0] == 200
        assert served.ledger.requests["initialize"] == 2


@pytest.mark.promise("GW-CURSOR")
async def test_long_lists_come_in_pages_and_a_cursor_fits_its_own_list_only() -> None:
    tools = tuple(ScriptedTool(f"t{number:04}", kind="echo") for number in range(1201))
    async with serve_http(Script("x", tools=tools)) as x, serve_http(Script("y", tools=tools)) as y:
        both = (MCPServer.http("x", x.url), MCPServer.http("y", y.url))
        async with (
            gateway(agent("a", both[0]), agent("b", both[1])) as running,
            raw(running.url("a")) as http,
            raw(running.url("b")) as other,
        ):
            names: list[str] = []
            cursors: list[str] = []
            params: dict[str, Any] = {}
            while True:
                _, page = await http.modern("tools/list", params)
                names += [tool["name"] for tool in page["result"]["tools"]]
                if "nextCursor" not in page["result"]:
                    break
                cursors.append(page["result"]["nextCursor"])
                params = {"cursor": cursors[-1]}
            assert names == [f"x_{tool.name}" for tool in tools]
            for foreign, method, cursor in (
                (other, "tools/list", cursors[0]),
                (http, "resources/list", cursors[0]),
                (http, "tools/list", "NTAw"),
                (http, "tools/list", ""),
            ):
                _, refused = await foreign.modern(method, {"cursor": cursor})
                assert refused["error"]["code"] == -32602
