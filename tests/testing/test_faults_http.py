"""Each fault shows itself over HTTP as described, and what is not struck goes well."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal

import aiohttp
import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.sse import sse_client

from outfitter.errors import Invalid
from outfitter.testing import (
    Crash,
    DuplicateReply,
    Fault,
    Garbage,
    Hang,
    Huge,
    LateReply,
    ListStorm,
    Redirect,
    Reset,
    Script,
    SessionLoss,
    Slow,
    SlowStart,
    Status,
    When,
    WrongId,
    serve_http,
)
from tests.testing.clients import BOUND, LEGACY, MODERN, call, handshake, http_headers, raw_post, request

pytestmark = [pytest.mark.anyio, pytest.mark.promise("TESTING-FAULTS")]
FIRST_ECHO = When(name="echo", times=1)
ECHO = call("echo", modern=True, text="x")


class Caller:
    """A bare HTTP client of one scripted server."""

    def __init__(self, url: str, session: aiohttp.ClientSession, stack: AsyncExitStack) -> None:
        self.url = url
        self.http = session
        self.stack = stack
        self.mcp_session: str | None = None

    async def post(self, message: Mapping[str, Any], **headers: str) -> aiohttp.ClientResponse:
        sent = http_headers(message, self.mcp_session) | headers
        sending = self.http.post(self.url, json=message, headers=sent, allow_redirects=False)
        return await self.stack.enter_async_context(sending)

    async def send(self, method: str) -> aiohttp.ClientResponse:
        """A request without a message: GET or DELETE."""
        sending = self.http.request(method, self.url, headers=http_headers({}, self.mcp_session))
        return await self.stack.enter_async_context(sending)

    async def result(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return (await (await self.post(message)).json())["result"]

    async def shake_hands(self) -> None:
        self.mcp_session = (await self.post(handshake())).headers.get("Mcp-Session-Id")

    async def ask_well(self, *, modern: bool = True) -> None:
        """The next healthy call succeeds."""
        result = await self.result(call("echo", modern=modern, text="well"))
        assert result["structuredContent"] == {"text": "well"}


@asynccontextmanager
async def calling(*faults: Fault, script: Script | None = None) -> AsyncGenerator[Caller]:
    with anyio.fail_after(BOUND):
        async with (
            serve_http(script or Script(faults=faults)) as serving,
            aiohttp.ClientSession() as session,
            AsyncExitStack() as stack,
        ):
            yield Caller(serving.url, session, stack)


async def hang_up(caller: Caller, message: Mapping[str, Any]) -> None:
    """Send a request, and close its connection once it arrived."""
    modern = "_meta" in message["params"]
    async with anyio.create_task_group() as group:
        group.start_soon(caller.post, message)
        arrived, own = 0, 0
        while arrived <= own:
            own += 1
            counts = await caller.result(call("stats", modern=modern))
            arrived = counts["structuredContent"]["requests"]["tools/call"]
        group.cancel_scope.cancel()


async def test_a_status_comes_with_its_body_and_headers() -> None:
    fault = Status(FIRST_ECHO, 429, "<html>busy</html>", {"Retry-After": "7", "Content-Type": "text/html"})
    async with calling(fault) as caller:
        response = await caller.post(ECHO)
        assert (response.status, await response.text()) == (429, "<html>busy</html>")
        assert (response.headers["Retry-After"], response.content_type) == ("7", "text/html")
        await caller.ask_well()


async def test_a_redirect_names_the_other_place() -> None:
    async with calling(Redirect(FIRST_ECHO, "http://127.0.0.1:9/elsewhere", 308)) as caller:
        response = await caller.post(ECHO)
        assert (response.status, response.headers["Location"]) == (308, "http://127.0.0.1:9/elsewhere")
        await caller.ask_well()


@pytest.mark.parametrize(("at", "headers", "body"), [("request", 0, 0), ("headers", 1, 0), ("body", 1, 1)])
async def test_a_reset_strikes_before_the_headers_after_them_or_in_the_reply(
    at: Literal["request", "headers", "body"], headers: int, body: int
) -> None:
    async with calling(Reset(FIRST_ECHO, at)) as caller:
        received: list[bytes] = []
        with pytest.raises(ConnectionResetError):
            await raw_post(caller.url, ECHO, received)
        head, _, rest = b"".join(received).partition(b"\r\n\r\n")
        assert (head.startswith(b"HTTP/1.1 200"), b'"jsonrpc"' in rest) == (bool(headers), bool(body))
        await caller.ask_well()


async def test_a_lost_session_is_not_found_until_the_next_handshake() -> None:
    async with calling(SessionLoss(When(name="echo", times=1))) as caller:
        await caller.shake_hands()
        response = await caller.post(call("echo"))
        assert response.status == 404
        assert (await caller.post(call("add", a=1, b=2))).status == 404
        await caller.shake_hands()
        await caller.ask_well(modern=False)


async def test_a_lost_session_ends_its_stream_of_notices() -> None:
    async with calling(SessionLoss(FIRST_ECHO)) as caller:
        await caller.shake_hands()
        stream = await caller.send("GET")
        assert (await caller.post(call("echo"))).status == 404
        assert await stream.read() == b""


async def test_garbage_comes_as_the_body_or_as_an_event() -> None:
    for answers in ("json", "sse"):
        fault = Garbage(FIRST_ECHO, "{oops\udcff")
        async with calling(script=Script(answers=answers, faults=(fault,))) as caller:
            body = await (await caller.post(ECHO)).read()
            assert body == (b"{oops\xff" if answers == "json" else b"event: message\ndata: {oops\xff\n\n")


async def test_a_slow_body_dribbles_and_is_whole_in_the_end() -> None:
    async with calling(Slow(FIRST_ECHO, bytes_per_interval=16, interval=0.001)) as caller:
        response = await caller.post(ECHO)
        pieces = [piece async for piece in response.content.iter_any()]
        assert len(pieces) > 3
        assert json.loads(b"".join(pieces))["result"]["structuredContent"] == {"text": "x"}
        await caller.ask_well()


async def test_a_huge_body_is_one_message_of_that_size() -> None:
    async with calling(Huge(FIRST_ECHO, size=5_000_000)) as caller:
        assert len((await caller.result(ECHO))["content"][0]["text"]) == 5_000_000
        await caller.ask_well()


async def test_a_reply_can_have_the_wrong_id_or_come_twice() -> None:
    async with calling(WrongId(FIRST_ECHO), DuplicateReply(When(name="add"))) as caller:
        assert (await (await caller.post(ECHO)).json())["id"] == "nobody-asked"
        twice = await (await caller.post(call("add", modern=True, a=1, b=2))).text()
        assert twice.count('"sum":3') == 2
        await caller.ask_well()


async def test_a_hanging_request_is_cancelled_by_closing_its_connection() -> None:
    async with calling(Hang(FIRST_ECHO)) as caller:
        await hang_up(caller, ECHO)
        counts = await caller.result(call("stats", modern=True, until_cancelled=1))
        assert counts["structuredContent"]["cancelled"] == 1
        await caller.ask_well()


async def test_in_the_handshake_era_closing_the_connection_cancels_nothing() -> None:
    async with calling() as caller:
        await caller.shake_hands()
        await hang_up(caller, call("sleep", id_=5, seconds=600))
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
        assert (await caller.result(call("stats")))["structuredContent"]["cancelled"] == 0
        assert (await caller.post(cancel)).status == 202
        assert (await caller.result(call("stats", until_cancelled=1)))["structuredContent"]["cancelled"] == 1


async def test_a_late_reply_comes_although_the_request_was_cancelled() -> None:
    replies: list[dict[str, Any]] = []
    async with calling(LateReply(FIRST_ECHO, seconds=0.3)) as caller, anyio.create_task_group() as group:
        await caller.shake_hands()

        async def ask() -> None:
            replies.append(await caller.result(call("echo", id_=5, text="late")))

        group.start_soon(ask)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
        cancelled = 0
        while not cancelled:
            await caller.post(cancel)
            cancelled = (await caller.result(call("stats")))["structuredContent"]["cancelled"]
    assert replies[0]["structuredContent"] == {"text": "late"}


async def test_a_slow_start_delays_the_first_answer() -> None:
    began = anyio.current_time()
    async with calling(SlowStart(0.3)) as caller:
        await caller.ask_well()
        assert anyio.current_time() - began >= 0.3


async def test_a_storm_of_changes_greets_the_stream_of_notices() -> None:
    async with calling(ListStorm(50)) as caller:
        await caller.shake_hands()
        stream = await caller.send("GET")
        seen = b""
        while seen.count(b"list_changed") < 50:
            seen += await stream.content.readany()
        await caller.ask_well(modern=False)


async def test_a_crash_is_refused_where_it_would_end_the_test() -> None:
    with pytest.raises(Invalid, match="would end the test"):
        async with serve_http(Script(faults=(Crash(),))):
            pass


async def test_the_stream_of_notices_can_be_refused() -> None:
    async with calling(Status(When("GET"), 405)) as caller:
        await caller.shake_hands()
        assert (await caller.send("GET")).status == 405
        await caller.ask_well(modern=False)


async def test_the_stream_of_notices_can_be_reset() -> None:
    async with calling(Reset(When("GET", times=1))) as caller:
        await caller.shake_hands()
        stream = await caller.send("GET")
        with pytest.raises(aiohttp.ClientError):
            await stream.read()
        assert (await caller.send("GET")).status == 200
        await caller.ask_well(modern=False)


async def test_with_events_a_reset_cuts_the_lasting_stream() -> None:
    async with serve_http(Script(faults=(Reset(FIRST_ECHO),))) as serving:
        with anyio.fail_after(BOUND), pytest.raises((ExceptionGroup, MCPError)):
            async with Client(sse_client(serving.sse_url), mode="legacy", cache=None) as client:
                await client.call_tool("echo", {})
        async with Client(sse_client(serving.sse_url), mode="legacy", cache=None) as client:
            assert not (await client.call_tool("echo", {})).is_error


@pytest.mark.promise("TESTING-SERVERS")
async def test_a_session_is_required_known_and_ended() -> None:
    async with calling() as caller:
        assert (await caller.post(call("echo"))).status == 400
        await caller.shake_hands()
        assert (await caller.send("DELETE")).status == 204
        assert (await caller.post(call("echo"))).status == 404
        assert (await caller.send("DELETE")).status == 404


@pytest.mark.promise("TESTING-SERVERS")
async def test_a_server_can_do_without_sessions() -> None:
    async with calling(script=Script(sessions=False)) as caller:
        await caller.shake_hands()
        assert caller.mcp_session is None
        await caller.ask_well(modern=False)
        assert (await caller.send("GET")).status == 405


@pytest.mark.promise("TESTING-SERVERS")
@pytest.mark.parametrize(
    ("message", "headers", "status", "code"),
    [
        (ECHO, {"Mcp-Name": "add"}, 400, -32020),
        (ECHO, {"Mcp-Method": "tools/list"}, 400, -32020),
        (ECHO, {"MCP-Protocol-Version": LEGACY}, 400, -32020),
        (ECHO, {"Mcp-Name": "=?base64?ZWNobw==?="}, 200, None),
        (ECHO, {"Mcp-Name": "=?base64?YWRk?="}, 400, -32020),
        (ECHO, {"Mcp-Name": "=?base64?***?="}, 400, -32020),
        (call("region", modern=True, region="eu"), {}, 400, -32020),
        (call("region", modern=True, region="eu"), {"Mcp-Param-Region": "eu"}, 200, None),
        (request("tools/list"), {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}, 400, -32602),
        (request("ping", modern=True), {}, 404, -32601),
        (call("ask", modern=True), {}, 400, -32021),
        ([handshake()], {}, 400, -32600),
    ],
)
async def test_headers_and_body_must_agree(
    message: dict[str, Any], headers: dict[str, str], status: int, code: int | None
) -> None:
    async with calling() as caller:
        sent = (http_headers(message) if isinstance(message, dict) else {}) | headers  # pyright: ignore[reportUnnecessaryIsInstance]
        async with caller.http.post(caller.url, json=message, headers=sent) as response:
            body = await response.json()
            assert (response.status, body.get("error", {}).get("code")) == (status, code)


@pytest.mark.promise("TESTING-SERVERS")
async def test_an_unknown_version_is_refused_with_those_that_are_spoken() -> None:
    message = call("echo", modern=True)
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
    async with calling() as caller:
        response = await caller.post(message, **{"MCP-Protocol-Version": "2099-01-01"})
        error = (await response.json())["error"]
        assert (response.status, error["code"]) == (400, -32022)
        assert MODERN in error["data"]["supported"]


@pytest.mark.promise("TESTING-SERVERS")
async def test_answers_travel_as_the_script_says() -> None:
    for answers, kind in (("auto", "application/json"), ("json", "application/json"), ("sse", "text/event-stream")):
        async with calling(script=Script(answers=answers)) as caller:  # pyright: ignore[reportArgumentType]
            assert (await caller.post(ECHO)).content_type == kind
            progress = request("tools/call", modern=True, name="progress", arguments={})
            progress["params"]["_meta"]["progressToken"] = 1
            wanted = "application/json" if answers == "json" else "text/event-stream"
            assert (await caller.post(progress)).content_type == wanted


@pytest.mark.promise("TESTING-SERVERS")
async def test_hits_and_connections_are_counted() -> None:
    async with serve_http(Script()) as serving, aiohttp.ClientSession() as session, AsyncExitStack() as stack:
        caller = Caller(serving.url, session, stack)
        for _ in range(3):
            await caller.ask_well()
        assert serving.hits == 3
        assert serving.ledger.connections == 1
        assert serving.ledger.requests["tools/call"] == 3
