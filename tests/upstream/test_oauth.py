"""Client credentials: one token for all, renewed once, and refusals told apart from outages."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import anyio
import pytest
from aiohttp import web

from outfitter.basics import Secret
from outfitter.catalog import Agent, Catalog, ClientCredentials, MCPServer, ServerEntry, ServerRef
from outfitter.errors import DestinationForbidden, NeedsAuth, OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.resolution import ArmedCredentials, ArmedServer, Supply, arm, resolve
from outfitter.upstream import ClientCredentialsAuthorizer, HttpClient, Link, Message, Patience, Pool, State
from tests.upstream.http_peers import CANARY, Reply, Request, an_answer, serve

pytestmark = pytest.mark.anyio

QUICK = Patience(tries=2, first_wait=0.02, longest_wait=0.05, cooldown=30)
Turn = Callable[["TokenEndpoint", dict[str, str], str], web.Response]


def grant(endpoint: TokenEndpoint, _form: dict[str, str], _header: str) -> web.Response:
    """A token with the number of the request."""
    return web.json_response({
        "access_token": f"token-{len(endpoint.forms)}", "token_type": "Bearer", "expires_in": 3600,
    })  # fmt: skip


def refuse(_endpoint: TokenEndpoint, form: dict[str, str], header: str) -> web.Response:
    """A refusal that repeats everything it was given."""
    said = f"{form} {header} {_secret_in(header)}"
    return web.json_response({"error": "invalid_client", "error_description": said}, status=401)


def _secret_in(header: str) -> str:
    return base64.b64decode(header.removeprefix("Basic ")).decode() if header else ""


@dataclass
class TokenEndpoint:
    """A real token endpoint on loopback: what it was asked, and how it answers."""

    turn: Turn = grant
    url: str = ""
    forms: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    headers: list[str] = field(default_factory=list[str])
    gate: anyio.Event | None = None

    async def answer(self, request: web.Request) -> web.Response:
        form = dict(parse_qsl((await request.read()).decode(), strict_parsing=True))
        header = request.headers.get("Authorization", "")
        self.forms.append(form)
        self.headers.append(header)
        if self.gate is not None:
            await self.gate.wait()
        return self.turn(self, form, header)

    def credentials(self, scope: str = "", audience: str = "") -> ArmedCredentials:
        """What a client of this endpoint is armed with."""
        return ArmedCredentials(*map(Secret, (self.url, "the client", CANARY, scope, audience)))


@asynccontextmanager
async def token_endpoint(turn: Turn = grant) -> AsyncGenerator[TokenEndpoint]:
    endpoint = TokenEndpoint(turn)
    app = web.Application()
    app.router.add_post("/token", endpoint.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}/token"
    try:
        yield endpoint
    finally:
        await runner.cleanup()


@dataclass
class Clock:
    """A time that the test moves."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


async def _sent(authorizer: ClientCredentialsAuthorizer) -> Secret:
    return (await authorizer.headers())["Authorization"]


async def test_a_token_is_asked_for_with_scope_and_audience_and_then_kept() -> None:
    async with token_endpoint() as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials("read write", "https://api"), client)
        assert await _sent(authorizer) == await _sent(authorizer) == Secret("Bearer token-1")
    expected = {"grant_type": "client_credentials", "scope": "read write", "audience": "https://api"}
    assert endpoint.forms == [expected]
    assert _secret_in(endpoint.headers[0]) == f"the+client:{CANARY}"


async def test_an_endpoint_that_wants_the_client_in_the_body_gets_it_there_from_then_on() -> None:
    def in_body_only(endpoint: TokenEndpoint, form: dict[str, str], header: str) -> web.Response:
        return (grant if form.get("client_secret") == CANARY and not header else refuse)(endpoint, form, header)

    clock = Clock()
    async with token_endpoint(in_body_only) as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client, clock)
        assert await _sent(authorizer) == Secret("Bearer token-2")
        clock.now += 3600
        assert await _sent(authorizer) == Secret("Bearer token-3")
    assert endpoint.forms[2]["client_id"] == "the client"


@pytest.mark.promise("F18")
async def test_fifty_calls_at_token_expiry_make_one_refresh() -> None:
    clock = Clock()
    async with token_endpoint() as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client, clock)
        await authorizer.headers()
        clock.now += 3600 - 30
        tokens = await _ask_at_once(authorizer, 50)
        assert tokens == [Secret("Bearer token-2")] * 50
        assert await _sent(authorizer) == Secret("Bearer token-2")
    assert len(endpoint.forms) == 2


async def _ask_at_once(authorizer: ClientCredentialsAuthorizer, times: int) -> list[Secret | OutfitterError]:
    found: list[Secret | OutfitterError] = []

    async def ask() -> None:
        try:
            found.append(await _sent(authorizer))
        except OutfitterError as error:
            found.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(times):
            group.start_soon(ask)
    return found


@pytest.mark.promise("F18")
async def test_fifty_refused_calls_make_one_refresh_and_one_refusal_is_told_to_all_who_wait() -> None:
    async with token_endpoint() as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client)
        old = await authorizer.headers()
        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(authorizer.challenged, 401, "", old)
        assert await authorizer.challenged(401, "", old) is True
        assert len(endpoint.forms) == 2

        endpoint.turn, old = refuse, await authorizer.headers()
        with pytest.raises(NeedsAuth):
            await authorizer.challenged(401, "", old)
        before = len(endpoint.forms)
        refused = await _ask_at_once(authorizer, 50)
        assert [type(error) for error in refused] == [NeedsAuth] * 50
        assert len({id(error) for error in refused}) == 50
        assert len(endpoint.forms) == before + 2  # once in the header, once in the body


async def test_whoever_gives_up_while_fetching_leaves_it_to_the_next() -> None:
    async with token_endpoint() as endpoint, HttpClient() as client:
        endpoint.gate = anyio.Event()
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client)
        with anyio.move_on_after(0.05) as impatient:
            await authorizer.headers()
        assert impatient.cancelled_caught
        endpoint.gate.set()
        assert await _sent(authorizer) == Secret("Bearer token-2")


async def test_no_token_helps_against_a_403() -> None:
    async with token_endpoint() as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client)
        assert await authorizer.challenged(403, "", await authorizer.headers()) is False
        assert len(endpoint.forms) == 1


async def test_a_refusal_shows_no_secret() -> None:
    async with token_endpoint(refuse) as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client)
        with pytest.raises(NeedsAuth, match=r"refused the client: 401, .invalid_client") as refusal:
            await authorizer.headers()
    assert CANARY not in str(refusal.value)
    assert endpoint.headers[0].removeprefix("Basic ") not in str(refusal.value)
    assert CANARY not in repr(authorizer)


@pytest.mark.parametrize("content", [
    {}, [], {"access_token": ""}, {"access_token": "a\r\nb"}, {"access_token": 7},
    {"access_token": "a", "token_type": "mac"},
])  # fmt: skip
async def test_an_answer_without_a_bearer_token_is_said_to_be_one(content: object) -> None:
    def odd(*_: object) -> web.Response:
        return web.json_response(content)

    async with token_endpoint(odd) as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client)
        with pytest.raises(ProtocolViolation, match="no bearer token"):
            await authorizer.headers()
        endpoint.turn = grant
        assert await _sent(authorizer) == Secret("Bearer token-2")


@pytest.mark.parametrize(("expires_in", "seconds"), [
    (3600, 3570), ("3600", 3570), (100, 90), (None, 270), (True, 270), (10**400, 7 * 24 * 3600 - 30),
])  # fmt: skip
async def test_a_token_is_kept_until_shortly_before_it_ends(expires_in: object, seconds: float) -> None:
    def lasting(endpoint: TokenEndpoint, *_: object) -> web.Response:
        return web.json_response({"access_token": f"token-{len(endpoint.forms)}", "expires_in": expires_in})

    clock = Clock()
    async with token_endpoint(lasting) as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client, clock)
        await authorizer.headers()
        clock.now += seconds - 0.5
        await authorizer.headers()
        assert len(endpoint.forms) == 1
        clock.now += 1
        await authorizer.headers()
        assert len(endpoint.forms) == 2


async def test_a_token_that_ends_at_once_is_still_good_for_everyone_who_waited_for_it() -> None:
    def short(endpoint: TokenEndpoint, *_: object) -> web.Response:
        return web.json_response({"access_token": f"token-{len(endpoint.forms)}", "expires_in": -5})

    async with token_endpoint(short) as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client)
        assert await _ask_at_once(authorizer, 50) == [Secret("Bearer token-1")] * 50


@pytest.mark.parametrize("status", [429, 503])
async def test_an_outage_of_the_token_endpoint_is_no_refusal_and_the_call_did_not_run(status: int) -> None:
    def fall_over(*_: object) -> web.Response:
        return web.Response(status=status)

    async with token_endpoint(fall_over) as endpoint, HttpClient() as client:
        authorizer = ClientCredentialsAuthorizer(endpoint.credentials(), client)
        with pytest.raises(UpstreamLost, match=f"token endpoint: it answered {status}") as lost:
            await authorizer.headers()
        assert not lost.value.may_have_run
        endpoint.turn = grant
        assert await _sent(authorizer) == Secret("Bearer token-2")


async def test_the_client_secret_does_not_travel_in_clear_text() -> None:
    async with HttpClient() as client:
        secrets = map(Secret, ("http://tokens.example/token", "id", CANARY, "", ""))
        with pytest.raises(DestinationForbidden):
            await ClientCredentialsAuthorizer(ArmedCredentials(*secrets), client).headers()


# ── on the wire ──


def armed(url: str, token_url: str, *, is_sse: bool = False) -> ArmedServer:
    """A server that wants a token."""
    make = MCPServer.sse if is_sse else MCPServer.http
    agent = Agent("a", servers={"s": ServerRef("s")})
    auth = ClientCredentials(token_url, "the client", Secret(CANARY))
    entry = ServerEntry(make("s", url), auth=auth)
    return arm(resolve(agent, Catalog.of([entry])), Supply()).servers["s"]


@dataclass
class Door:
    """An MCP server that lets in whoever shows the token it wants now."""

    wanted: str = "Bearer token-1"
    status: int = 401

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.headers.get("authorization") != self.wanted:
            said = f"bad token {request.headers.get('authorization')}"
            await reply.whole(said.encode(), self.status, "text/plain", WWW_Authenticate='Bearer error="invalid_token"')
        elif request.method != "POST" or "id" not in request.message:
            await reply.whole(status=202)
        elif request.message["method"] == "server/discover":
            answer = an_answer(request.message["id"], supportedVersions=["2026-07-28"], capabilities={})
            await reply.json(answer)
        else:
            await reply.json(an_answer(request.message["id"], content=[]))


async def _call(link: Link) -> Message:
    return await link.call_tool("t", {})


@pytest.mark.promise("F17")
async def test_a_refused_request_is_repeated_once_with_a_new_token() -> None:
    door = Door()
    async with token_endpoint() as tokens, serve(door) as peer, Pool(patience=QUICK) as pool:
        connection = pool.connect(armed(peer.url, tokens.url))
        await connection.use(_call)
        door.wanted = "Bearer token-2"
        asked = len(peer.requests)
        assert (await connection.use(_call))["content"] == []
        assert [request.headers["authorization"] for request in peer.requests[asked:]] == [
            "Bearer token-1", "Bearer token-2",
        ]  # fmt: skip
        assert len(tokens.forms) == 2
        assert connection.health.state is State.READY


@pytest.mark.promise("F17")
@pytest.mark.parametrize(("status", "requests", "fetches"), [(401, 2, 1), (403, 1, 0)])
async def test_a_server_that_still_refuses_needs_auth_and_is_not_down(status: int, requests: int, fetches: int) -> None:
    door = Door()
    async with token_endpoint() as tokens, serve(door) as peer, Pool(patience=QUICK) as pool:
        connection = pool.connect(armed(peer.url, tokens.url))
        await connection.use(_call)
        door.wanted, door.status, asked = "another", status, len(peer.requests)
        with pytest.raises(NeedsAuth) as refusal:
            await connection.use(_call)
        assert "token-" not in str(refusal.value)
        assert len(peer.requests) - asked == requests
        assert len(tokens.forms) == 1 + fetches
        assert connection.health.state is State.NEEDS_AUTH


@pytest.mark.promise("F17")
async def test_a_client_that_the_token_endpoint_refuses_needs_auth_and_one_that_is_let_in_again_works() -> None:
    patience = Patience(tries=2, first_wait=0.02, longest_wait=0.05, cooldown=0.05)
    async with token_endpoint(refuse) as tokens, serve(Door("Bearer token-3")) as peer, Pool(patience=patience) as pool:
        connection = pool.connect(armed(peer.url, tokens.url))
        with pytest.raises(NeedsAuth, match="token endpoint") as refusal:
            await connection.use(_call)
        assert connection.health.state is State.NEEDS_AUTH
        assert "server 's'" in refusal.value.where
        assert peer.requests == []
        tokens.turn = grant
        await anyio.sleep(patience.cooldown)
        assert (await connection.use(_call))["content"] == []


@pytest.mark.promise("F18")
async def test_fifty_calls_on_one_connection_whose_token_was_withdrawn_make_one_refresh() -> None:
    door = Door()
    async with token_endpoint() as tokens, serve(door) as peer, Pool(patience=QUICK) as pool:
        connection = pool.connect(armed(peer.url, tokens.url))
        await connection.use(_call)
        door.wanted = "Bearer token-2"
        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(connection.use, _call)
        assert len(tokens.forms) == 2
        await connection.use(_call)


async def test_servers_of_the_same_client_share_its_token() -> None:
    async with token_endpoint() as tokens, serve(Door()) as one, serve(Door()) as two, Pool(patience=QUICK) as pool:
        await pool.connect(armed(one.url, tokens.url)).use(_call)
        await pool.connect(armed(two.url, tokens.url)).use(_call)
    assert len(tokens.forms) == 1


async def test_the_older_transport_shows_the_token_too() -> None:
    async def open_stream(request: Request, reply: Reply) -> None:
        await reply.whole(status=405 if request.headers.get("authorization") == "Bearer token-2" else 401)

    async with token_endpoint() as tokens, serve(open_stream) as peer, Pool(patience=Patience(tries=1)) as pool:
        with pytest.raises(OutfitterError, match="405"):
            await pool.connect(armed(peer.url, tokens.url, is_sse=True)).use(_call)
    assert [request.headers["authorization"] for request in peer.requests] == ["Bearer token-1", "Bearer token-2"]
