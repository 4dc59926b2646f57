"""Strangers at the port: those who say nothing, those who are too many, and those who trust a certificate."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import pytest

from outfitter.catalog import MCPServer
from outfitter.errors import Invalid
from outfitter.gateway import Address, Gate, HttpFront, Welcome, serving
from outfitter.testing import Script, serve_http
from tests.certificates import make_certificate
from tests.gateway.kit import Raw, agent, gateway, raw

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def welcoming(welcome: Welcome, *, is_fast: bool, address: Address | None = None) -> AsyncGenerator[Address]:
    async with serve_http(Script("x")) as served, gateway(agent("a", MCPServer.http("x", served.url))) as running:
        front = HttpFront(running.desk, Gate(None))
        async with serving(front, address or Address(port=0), is_fast=is_fast, welcome=welcome) as found:
            yield found


@pytest.mark.promise("F10")
@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize("begin", [b"", b"POST /mcp/a HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"GET /"])
async def test_a_request_that_never_comes_whole_is_not_waited_for(begin: bytes, *, is_fast: bool) -> None:
    async with welcoming(Welcome(request_seconds=0.3), is_fast=is_fast) as address, raw(address.url("a")) as http:
        slow = [await asyncio.open_connection("127.0.0.1", address.port) for _ in range(20)]
        for _, writer in slow:
            writer.write(begin)
        assert (await http.modern("tools/call", {"name": "x_echo", "arguments": {}}))[0] == 200
        with anyio.fail_after(10):
            assert [await reader.read() for reader, _ in slow] == [b""] * 20
        assert (await http.modern("tools/call", {"name": "x_echo", "arguments": {}}))[0] == 200
        for _, writer in slow:
            writer.close()


@pytest.mark.promise("F10")
@pytest.mark.parametrize("is_fast", [True, False])
async def test_those_who_are_too_many_are_told_to_come_back(*, is_fast: bool) -> None:
    async with welcoming(Welcome(connections=3), is_fast=is_fast) as address:
        many = [await asyncio.open_connection("127.0.0.1", address.port) for _ in range(3)]
        await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        with anyio.fail_after(10):
            assert (await reader.read()).startswith(b"HTTP/1.1 503")
        for _, other in [*many, (reader, writer)]:
            other.close()
            await other.wait_closed()
        with anyio.fail_after(10):
            async with raw(address.url("a")) as http:
                assert (await http.modern("tools/list"))[0] == 200


@pytest.mark.promise("GATEWAY-TLS")
@pytest.mark.parametrize("is_fast", [True, False])
async def test_with_a_certificate_it_speaks_https(tmp_path: Path, *, is_fast: bool) -> None:
    certificate = make_certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with (
        welcoming(Welcome(), is_fast=is_fast, address=Address("localhost", 0, certificate)) as address,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session,
    ):
        url = address.url("a")
        assert url.startswith("https://localhost:")
        for _ in range(2):
            status, answer = await Raw(url, session).modern("tools/call", {"name": "x_echo", "arguments": {}})
            assert (status, "result" in answer) == (200, True)


async def test_a_certificate_that_is_none_is_refused_before_anything_listens(tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    file.write_text("no certificate")
    with pytest.raises(ExceptionGroup) as told:
        async with welcoming(Welcome(), is_fast=True, address=Address("localhost", 0, file)):
            pass
    assert told.group_contains(Invalid, match=f"^{file}: the certificate cannot be used: it is not one")
