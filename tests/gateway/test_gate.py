"""Who gets in: tokens, hosts, origins, and headers that must say what the body says."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from outfitter.catalog import MCPServer
from outfitter.errors import Forbidden
from outfitter.gateway import Address, Gate, HttpFront, serving
from outfitter.testing import Script, serve_http
from tests.gateway.kit import Raw, Running, agent, gateway, raw

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def guarded(folder: Path) -> AsyncGenerator[tuple[Running, str]]:
    async with serve_http(Script("x")) as served:
        server = MCPServer.http("x", served.url)
        async with gateway(agent("a", server), agent("b", server), tokens=folder / "tokens.json") as running:
            assert running.tokens is not None
            token, _ = running.tokens.issue("a")
            yield running, token


@pytest.mark.promise("G05", "GW-TOKENS")
async def test_a_token_lets_its_agent_in_and_nobody_else(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (running, token):
        async with raw(running.url("a"), token) as http:
            assert (await http.modern("tools/list"))[0] == 200
        async with raw(running.url("b"), token) as http:
            assert (await http.modern("tools/list"))[0] == 403
        for wrong in (None, "", token[:-1], token + "x"):
            async with raw(running.url("a"), wrong) as http:
                assert (await http.modern("tools/list"))[0] == 401


@pytest.mark.promise("GW-TOKENS")
async def test_revoked_and_expired_tokens_let_nobody_in(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (running, _):
        assert running.tokens is not None
        revoked, record = running.tokens.issue("a")
        running.tokens.revoke(record.id)
        expired, _ = running.tokens.issue("a", expires_at=datetime.now(UTC) - timedelta(seconds=1))
        bound, _ = running.tokens.issue("a", server="x")
        for token in (revoked, expired, bound):
            async with raw(running.url("a"), token) as http:
                assert (await http.modern("tools/list"))[0] in {401, 403}
        async with raw(running.url("a", "x"), bound) as http:
            assert (await http.modern("tools/list"))[0] == 200


@pytest.mark.promise("GW-TOKENS")
async def test_no_token_is_ever_written(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, token):
        kept = (tmp_path / "tokens.json").read_text()
        assert token not in kept
        assert token.rpartition("_")[2] not in kept
        assert (tmp_path / "tokens.json").stat().st_mode & 0o077 == 0


@pytest.mark.promise("G01", "G02", "G07")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"host": "evil.example"}, 421),
        ({"mcp_name": "x_add"}, 400),
        ({"mcp_name": "=?base64?eF9hZGQ=?="}, 400),
        ({"mcp_method": "tools/list"}, 400),
        ({"mcp_protocol_version": "2025-11-25"}, 400),
        ({"content_type": "text/plain"}, 415),
        ({"accept": "application/json"}, 406),
    ],
)
async def test_a_request_that_contradicts_itself_goes_nowhere(headers: dict[str, str], status: int) -> None:
    async with (
        serve_http(Script("x")) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
    ):
        found, _ = await http.modern("tools/call", {"name": "x_echo", "arguments": {}}, **headers)
        assert found == status
        assert served.ledger.requests["tools/call"] == 0
        assert (await http.modern("tools/call", {"name": "x_echo", "arguments": {}}))[0] == 200


@pytest.mark.promise("G09")
@pytest.mark.parametrize("body", [[], [{"jsonrpc": "2.0", "id": 1, "method": "ping"}], {}, "text", 7])
async def test_what_is_not_one_message_is_refused(body: object) -> None:
    async with gateway(agent("a")) as running, raw(running.url("a")) as http:
        assert (await http.post(body))[0] == 400


@pytest.mark.promise("G27")
async def test_a_body_of_100_000_levels_is_refused_and_the_gateway_lives() -> None:
    async with gateway(agent("a")) as running, aiohttp.ClientSession() as session:
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        deep = b"[" * 100_000 + b"]" * 100_000
        async with session.post(running.url("a"), data=deep, headers=headers) as answer:
            assert answer.status == 400
        assert (await Raw(running.url("a"), session).modern("tools/list"))[0] == 200


@pytest.mark.promise("G10")
async def test_a_visit_belongs_to_its_token_and_endpoint(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (running, token):
        assert running.tokens is not None
        other, _ = running.tokens.issue("a")
        async with raw(running.url("a"), token) as http:
            visit = await http.handshake()
            assert (await http.legacy("tools/list"))[0] == 200
        async with raw(running.url("a"), other) as http:
            http.headers |= {"mcp-session-id": visit}
            assert (await http.legacy("tools/list"))[0] == 404


@pytest.mark.promise("G13")
async def test_the_clients_own_credentials_stay_here(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        server = MCPServer.http("x", served.url, headers={"X-Api-Key": "ours"})
        async with gateway(agent("a", server), tokens=tmp_path / "t.json") as running:
            assert running.tokens is not None
            token, _ = running.tokens.issue("a")
            async with raw(running.url("a"), token) as http:
                _, answer = await http.modern("tools/call", {"name": "x_headers", "arguments": {}}, cookie="a=b")
                assert token not in str(answer)
                assert "a=b" not in str(answer)
                assert "ours" in str(answer)


@pytest.mark.promise("G03")
async def test_without_tokens_it_listens_on_loopback_only() -> None:
    async with gateway(agent("a")) as running:
        front = HttpFront(running.desk, Gate(None))
        with pytest.raises(Forbidden):
            async with serving(front, Address("0.0.0.0", 0)):  # noqa: S104 - refused, which is the point
                pass
