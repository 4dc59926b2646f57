"""Servers that fail behind the gateway: the client hears of it in time and honestly, and the next call works.

Each fault strikes a first call, which takes the full lane, and a later one, which takes the fast lane.
"""

from __future__ import annotations

import resource
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import anyio
import pytest
from aiohttp import web

from outfitter.basics import Secret
from outfitter.catalog import Agent, Catalog, ClientCredentials, MCPServer, ServerEntry, ServerRef, TimeLimits
from outfitter.gateway import Address, Gate, HttpFront, Seat, open_desk, serving
from outfitter.resolution import Supply, arm_each, resolve
from outfitter.testing import (
    Crash,
    EndlessCursor,
    Fault,
    Garbage,
    Hang,
    Huge,
    Reset,
    Script,
    Slow,
    Status,
    When,
    serve_http,
    stdio_server,
)
from outfitter.upstream import Patience, Pool
from tests.gateway.kit import Raw, agent, gateway, raw
from tests.gateway.watched import until
from tests.upstream.stage import QUICK

pytestmark = pytest.mark.anyio
WARM = pytest.mark.parametrize("is_warm", [False, True])
ECHO: dict[str, Any] = {"name": "echo", "arguments": {"text": "hi"}}
CALM = replace(QUICK, tries=5, cooldown=0.05)


def struck(*, is_warm: bool, name: str | None = "echo") -> When:
    """The first call of a tool, or the one after it."""
    return When(name=name, after=1 if is_warm else 0, times=1)


def told_by(answer: dict[str, Any]) -> tuple[str, str]:
    """The code and the text of a failed call."""
    result = answer["result"]
    assert result["isError"] is True, answer
    return result["_meta"]["outfitter/outcome"]["code"], result["content"][0]["text"]


@dataclass(frozen=True, slots=True)
class Struck:
    """A client of a gateway whose server has a fault, and how many calls came through to that server."""

    http: Raw
    calls: Any

    async def call(self) -> dict[str, Any]:
        """One call, and nothing before it."""
        _, answer = await self.http.modern("tools/call", ECHO)
        return answer


@asynccontextmanager
async def behind(
    fault: Fault, *, is_warm: bool, limits: TimeLimits | None = None, patience: Patience = CALM
) -> AsyncGenerator[Struck]:
    async with serve_http(Script("x", faults=(fault,))) as served:
        server = MCPServer.http("x", served.url, limits=limits or TimeLimits())
        async with gateway(agent("a", server), patience=patience) as running, raw(running.url("a", "x")) as http:
            await http.modern("tools/list")
            one = Struck(http, lambda: served.ledger.requests["tools/call"])
            if is_warm:
                assert "hi" in str(await one.call())
            yield one


@WARM
@pytest.mark.promise("F01")
@pytest.mark.parametrize("at", ["headers", "body"])
async def test_a_reset_is_told_at_once_and_the_call_is_not_repeated(
    at: Literal["headers", "body"], *, is_warm: bool
) -> None:
    async with behind(Reset(struck(is_warm=is_warm), at), is_warm=is_warm) as one:
        before, began = one.calls(), time.monotonic()
        code, _ = told_by(await one.call())
        assert time.monotonic() - began < 1
        assert code == "upstream_lost"
        assert one.calls() == before + 1, "it may have run: it is not sent again"
        assert "hi" in str(await one.call())


@WARM
@pytest.mark.promise("F02")
async def test_a_killed_program_is_told_with_its_signal_and_started_again(*, is_warm: bool) -> None:
    server = stdio_server(Script("x", faults=(Crash(struck(is_warm=is_warm)),)))
    async with gateway(agent("a", server), patience=CALM) as running, raw(running.url("a", "x")) as http:
        one = Struck(http, lambda: 0)
        if is_warm:
            assert "hi" in str(await one.call())
        began = time.monotonic()
        code, text = told_by(await one.call())
        assert code == "upstream_lost"
        assert "SIGKILL" in text or "signal 9" in text
        assert time.monotonic() - began < (1 if is_warm else 10), "the first call also starts the program"
        # A new process counts its calls anew.
        again = str(await one.call())
        assert "hi" in again if is_warm else "signal" in again or "SIGKILL" in again


@WARM
@pytest.mark.promise("F03")
async def test_a_server_that_never_answers_is_given_up_in_time_and_told(*, is_warm: bool) -> None:
    limits = TimeLimits(call=1.0, total=5.0)
    async with serve_http(Script("x", faults=(Hang(struck(is_warm=is_warm)),))) as served:
        server = MCPServer.http("x", served.url, limits=limits)
        async with gateway(agent("a", server), patience=CALM) as running, raw(running.url("a", "x")) as http:
            await http.modern("tools/list")
            one = Struck(http, lambda: 0)
            if is_warm:
                await one.call()
            began = time.monotonic()
            code, _ = told_by(await one.call())
            assert 0.9 < time.monotonic() - began < 1.6
            assert code == "upstream_timeout"
            await until(lambda: served.ledger.cancelled == 1)
            await until(lambda: running.desk.turnstile.under_way == 0)
            assert "hi" in str(await one.call())


@WARM
@pytest.mark.promise("F05")
async def test_a_server_that_trickles_is_given_up_in_time(*, is_warm: bool) -> None:
    slow = Slow(struck(is_warm=is_warm), bytes_per_interval=1, interval=0.2)
    async with behind(slow, is_warm=is_warm, limits=TimeLimits(call=1.0, total=2.0)) as one:
        began = time.monotonic()
        code, _ = told_by(await one.call())
        assert time.monotonic() - began < 2.6
        assert code == "upstream_timeout"
        assert "hi" in str(await one.call())


@pytest.mark.promise("F06")
async def test_progress_keeps_a_call_alive_and_the_total_still_holds() -> None:
    limits = TimeLimits(call=0.6, total=2.5)
    async with serve_http(Script("x")) as served:
        server = MCPServer.http("x", served.url, limits=limits)
        async with gateway(agent("a", server)) as running, raw(running.url("a", "x")) as http:
            meta: dict[str, Any] = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "progressToken": "p",
            }
            for count, is_good in ((4, True), (60, False)):
                params: dict[str, Any] = {"name": "progress", "arguments": {"n": count, "seconds": 0.3}, "_meta": meta}
                began = time.monotonic()
                _, said = await http.modern("tools/call", params)
                took = time.monotonic() - began
                assert ('"steps"' in said) is is_good, said
                assert took > 1.2 if is_good else 2.3 < took < 3.2


@WARM
@pytest.mark.promise("F07")
@pytest.mark.parametrize(
    "text", ["{", "plain words", '\ufeff{"a": 1', "\udcff\udcfe", "<html><body>502 Bad Gateway</body></html>"]
)
async def test_garbage_is_an_error_that_quotes_it_and_the_next_call_works(text: str, *, is_warm: bool) -> None:
    async with behind(Garbage(struck(is_warm=is_warm), text), is_warm=is_warm) as one:
        code, told = told_by(await one.call())
        assert code == "protocol_violation"
        assert len(told) < 600
        assert "hi" in str(await one.call())


@WARM
@pytest.mark.promise("F09")
async def test_a_huge_result_is_cut_at_the_cap(*, is_warm: bool) -> None:
    async with behind(Huge(struck(is_warm=is_warm), size=200 * 1024**2), is_warm=is_warm) as one:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        code, _ = told_by(await one.call())
        assert code == "protocol_violation"
        # The server is in this process too: what it holds itself is four times the size of its text at most.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 5 * 200 * 1024
        assert "hi" in str(await one.call())


@WARM
@pytest.mark.promise("F17", "G33")
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("place", ["", "javascript:alert(1)", "$(touch /tmp/x)"])
async def test_a_server_that_wants_other_credentials_is_told_apart(status: int, place: str, *, is_warm: bool) -> None:
    async with serve_http(Script("canary")) as canary:
        challenge = {"www-authenticate": f'Bearer resource_metadata="{place or canary.url}"'}
        fault = Status(struck(is_warm=is_warm), status, "no", challenge)
        async with behind(fault, is_warm=is_warm) as one:
            code, text = told_by(await one.call())
            assert code == "needs_auth"
            assert "credentials" in text
            assert "metadata" not in text
            with anyio.fail_after(10):
                while "hi" not in str(await one.call()):  # noqa: ASYNC110 - it rests for a moment
                    await anyio.sleep(0.02)
        assert canary.hits == 0, "no address that a server names is fetched"


@pytest.mark.promise("F39")
@pytest.mark.parametrize("loop", [True, False])
async def test_a_list_that_does_not_end_takes_its_server_out_and_no_other(*, loop: bool) -> None:
    script = Script("x", faults=(EndlessCursor(loop),), page_size=2)
    async with serve_http(script) as endless, serve_http(Script("y")) as good:
        both = agent("a", MCPServer.http("x", endless.url), MCPServer.http("y", good.url))
        async with gateway(both, patience=CALM) as running, raw(running.url("a")) as http:
            with anyio.fail_after(30):
                _, listed = await http.modern("tools/list")
            names = [tool["name"] for tool in listed["result"]["tools"]]
            assert "y_echo" in names
            assert not [name for name in names if name.startswith("x_")]
            _, answer = await http.modern("tools/call", {**ECHO, "name": "y_echo"})
            assert "hi" in str(answer)


# ── a server that forgets its sessions, and for a while gives no new one either ──


@dataclass(slots=True)
class Forgetful:
    """A server of the handshake era that loses its sessions, and answers 404 to everything while it is away."""

    is_away: bool = False
    known: int = 0
    url: str = ""
    turned: int = 0

    async def post(self, request: web.Request) -> web.Response:
        """Answer one message."""
        message: dict[str, Any] = await request.json()
        method, given = message.get("method"), request.headers.get("mcp-session-id")
        if self.is_away or (method not in {"initialize", "server/discover"} and given != str(self.known)):
            self.turned += 1
            return web.Response(status=404, text="no such session")
        if "id" not in message:
            return web.Response(status=202)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "initialize":
            self.known += 1
            info = {"name": "forgetful", "version": "1"}
            result: dict[str, Any] = {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info
            }  # fmt: skip
            return web.json_response({**reply, "result": result}, headers={"mcp-session-id": str(self.known)})
        if method == "tools/list":
            result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": str(message["params"].get("arguments"))}]}
        else:
            return web.json_response({**reply, "error": {"code": -32601, "message": "Method not found"}})
        return web.json_response({**reply, "result": result})


@asynccontextmanager
async def forgetful() -> AsyncGenerator[Forgetful]:
    server = Forgetful()
    app = web.Application()
    app.router.add_post("/mcp", server.post)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        yield server
    finally:
        await runner.cleanup()


@pytest.mark.promise("F13")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_that_refuses_the_new_handshake_for_a_moment_is_not_given_up_for_good(era: str) -> None:
    async with (
        forgetful() as server,
        gateway(agent("a", MCPServer.http("x", server.url)), patience=QUICK) as running,
        raw(running.url("a", "x")) as http,
    ):
        if era == "legacy":
            await http.handshake()
        ask = http.legacy if era == "legacy" else http.modern
        for _ in range(2):
            assert "hi" in str((await ask("tools/call", ECHO))[1])
        server.is_away = True
        server.known += 1
        with anyio.move_on_after(0.1):
            while True:
                _, answer = await ask("tools/call", ECHO)
                assert answer["result"]["isError"] is True
        server.is_away = False
        assert server.turned >= 2, "the call and the handshake after it"
        _, answer = await ask("tools/call", ECHO)
        assert "hi" in str(answer), "the next call recovers"
        assert "isError" not in answer["result"]


# ── a server whose token runs out under many calls ──


@dataclass(slots=True)
class Club:
    """A server and its token endpoint: the newest token lets in, none before it does."""

    granted: int = 0
    valid: int = 1
    url: str = ""

    async def token(self, request: web.Request) -> web.Response:
        """Grant a token."""
        await request.read()
        self.granted += 1
        return web.json_response({"access_token": f"t{self.granted}", "token_type": "Bearer", "expires_in": 3600})

    async def post(self, request: web.Request) -> web.Response:
        """Answer one message of somebody with the right token."""
        message: dict[str, Any] = await request.json()
        if request.headers.get("authorization") != f"Bearer t{self.valid}":
            return web.Response(status=401, headers={"www-authenticate": 'Bearer error="invalid_token"'})
        found: dict[str, Any] = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
        }
        result = found.get(message["method"], {"content": [{"type": "text", "text": "hi"}]})
        return web.json_response(
            {"jsonrpc": "2.0", "id": message.get("id"), "result": {"resultType": "complete", **result}}
        )


@asynccontextmanager
async def club() -> AsyncGenerator[tuple[Club, str]]:
    """The club, and the address of an agent's endpoint in front of it."""
    server = Club()
    app = web.Application()
    app.router.add_post("/mcp", server.post)
    app.router.add_post("/token", server.token)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        auth = ClientCredentials(f"{server.url}/token", "the client", Secret("secret"))
        entry = ServerEntry(MCPServer.http("x", f"{server.url}/mcp"), auth=auth)
        plan = resolve("a", Catalog.of([entry], [], [Agent("a", servers={"x": ServerRef("x")})]))
        async with (
            open_desk(lambda _: Seat(plan, arm_each(plan, Supply())), None, lambda: Pool(patience=CALM)) as desk,
            serving(HttpFront(desk, Gate(None)), Address(port=0)) as address,
        ):
            yield server, address.url("a", "x")
    finally:
        await runner.cleanup()


@WARM
@pytest.mark.promise("F18")
async def test_fifty_calls_at_the_end_of_a_token_fetch_one_new_one(*, is_warm: bool) -> None:
    answers: list[dict[str, Any]] = []
    async with club() as (server, url), raw(url) as http:

        async def call() -> None:
            answers.append((await http.modern("tools/call", ECHO))[1])

        for _ in range(2 if is_warm else 0):
            await call()
        await http.modern("tools/list")
        server.valid = 2
        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(call)
    assert [answer["result"]["content"][0]["text"] for answer in answers] == ["hi"] * len(answers)
    assert len(answers) == (52 if is_warm else 50)
    assert server.granted == 2
