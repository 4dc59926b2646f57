"""The gateway with the registry's tokens: real gateways, real databases, one that goes away."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from outfitter.catalog import Catalog, MCPServer
from outfitter.coordinator import Access, GatewayTokens, Scope
from outfitter.errors import StorageUnavailable
from outfitter.gateway import ADMIN, Address, Gate, HttpFront, Page, Seat, open_desk, serving
from outfitter.resolution import Supply, arm_each, resolve
from outfitter.testing import Script, serve_http
from outfitter.upstream import Pool
from tests.coordinator.access.kit import access_to, bearer, until
from tests.gateway.kit import agent, raw
from tests.postgres import Postgres
from tests.upstream.stage import QUICK

pytestmark = [pytest.mark.anyio, pytest.mark.promise("ACCESS-GATEWAY")]


@asynccontextmanager
async def gateway(tokens: GatewayTokens) -> AsyncGenerator[Address]:
    """A gateway with one agent ``a`` and one server ``x``, and a private page."""
    async with serve_http(Script("x")) as served:
        catalog = Catalog(agents={"a": agent("a", MCPServer.http("x", served.url))})

        def make(name: str) -> Seat:
            plan = resolve(name, catalog)
            return Seat(plan, arm_each(plan, Supply()))

        gate = Gate(tokens, pages={"/metrics": Page(lambda: (200, "figures"), is_private=True)})
        async with (
            open_desk(make, tokens, lambda: Pool(patience=QUICK)) as desk,
            serving(HttpFront(desk, gate), Address(port=0)) as address,
        ):
            yield address


async def status(address: Address, token: str, server: str | None = None) -> int:
    async with raw(address.url("a", server), token) as http:
        return (await http.modern("tools/list"))[0]


async def page(address: Address, token: str) -> int:
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{address.origin}/metrics", headers={"authorization": bearer(token)}) as answer,
    ):
        return answer.status


async def test_each_role_opens_at_the_gateway_what_is_its_own(database_url: str, tmp_path: Path) -> None:
    async with access_to(database_url, tmp_path) as access, gateway(access.gateway) as address:
        ours, _ = await access.tokens.issue("agent", by="ann", scope=Scope("a"))
        bound, _ = await access.tokens.issue("agent", by="ann", scope=Scope("a", "x"))
        other, _ = await access.tokens.issue("agent", by="ann", scope=Scope("b"))
        admin, _ = await access.tokens.issue("admin", by="ann")
        editor, _ = await access.tokens.issue("editor", by="ann")
        viewer, _ = await access.tokens.issue("viewer", by="ann", scope=Scope("a"))
        assert [await status(address, one) for one in (ours, other, admin, editor, viewer, "x")] == [
            200, 403, 403, 401, 401, 401,
        ]  # fmt: skip
        assert (await status(address, bound), await status(address, bound, "x")) == (403, 200)
        watcher, _ = await access.tokens.issue("viewer", by="ann")
        assert [await page(address, one) for one in (admin, watcher, viewer, ours, editor, "")] == [
            200, 200, 401, 401, 401, 401,
        ]  # fmt: skip
        assert await status(address, watcher) == 403
        assert [record.agent for record in access.gateway.records()] == ["a", "a", "b", ADMIN, ADMIN]


async def test_a_revoked_token_ends_at_every_gateway_within_a_second(database_url: str, tmp_path: Path) -> None:
    async with (
        access_to(database_url, tmp_path) as one,
        access_to(database_url, tmp_path) as two,
        gateway(one.gateway) as first,
        gateway(two.gateway) as second,
    ):
        token, record = await one.tokens.issue("agent", by="ann", scope=Scope("a"))
        await until(lambda: two.gateway.find(token) is not None, seconds=1.0)
        assert (await called(first, token), await called(second, token)) == (200, 200)
        before = two.gateway.look(0.0)
        await one.tokens.revoke(record.id)
        assert await called(first, token) == 401
        await until(lambda: two.gateway.look(0.0) != before, seconds=1.0)
        assert await called(second, token) == 401


async def called(address: Address, token: str) -> int:
    """The status of a call, which takes the gateway's shortest way."""
    async with raw(address.url("a"), token) as http:
        return (await http.modern("tools/call", {"name": "x_echo", "arguments": {"text": "hi"}}))[0]


async def test_the_last_known_tokens_go_on_while_the_database_is_away(own_postgres: Postgres, tmp_path: Path) -> None:
    async with access_to(own_postgres.url(), tmp_path) as access, gateway(access.gateway) as address:
        token, record = await access.tokens.issue("agent", by="ann", scope=Scope("a"))
        viewer, _ = await access.tokens.issue("viewer", by="ann")
        assert await status(address, token) == 200
        own_postgres.stop()
        try:
            assert await status(address, token) == 200
            assert (await access.identify(bearer(viewer))).role == "viewer"
            with pytest.raises(StorageUnavailable):
                await access.tokens.revoke(record.id)
            assert await status(address, token) == 200
        finally:
            own_postgres.start()
        await _revoke_elsewhere(own_postgres.url(), tmp_path, record.id)
        await until(lambda: access.gateway.find(token) is None)
        assert await status(address, token) == 401


async def _revoke_elsewhere(url: str, folder: Path, token_id: str) -> None:
    async with access_to(url, folder) as access:
        await access.tokens.revoke(token_id)


async def test_uses_at_the_gateway_are_seen_also_when_nothing_else_changes(sqlite_url: str, tmp_path: Path) -> None:
    async with access_to(sqlite_url, tmp_path) as access:
        token, _ = await access.tokens.issue("agent", by="ann", scope=Scope("a"))
        assert access.gateway.look(60.0) == access.gateway.look(119.0) < access.gateway.look(120.0)
        async with gateway(access.gateway) as address:
            assert await status(address, token) == 200
        assert await _used(access)


async def _used(access: Access) -> bool:
    await access.last_used.flush()
    return (await access.tokens.records())[0].last_used_at is not None
