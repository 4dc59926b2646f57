"""HTTP as clients really speak it to the fast lane: many requests on one connection, at once, in pieces, or one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from outfitter.catalog import MCPServer
from tests.gateway.fast_kit import Lane, Parrot, lane, parrot
from tests.gateway.kit import MODERN, agent, raw
from tests.gateway.watched import until

pytestmark = pytest.mark.anyio
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(ident: int, name: str = "x_say", *, version: str = "1.1", text: str = "", **headers: str) -> bytes:
    params: dict[str, Any] = {"name": name, "arguments": {"n": ident, "text": text}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}).encode()
    named = {
        "Host": "localhost", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name,
        "Content-Length": str(len(body)), **{key.replace("_", "-"): value for key, value in headers.items()},
    }  # fmt: skip
    lines = "".join(f"{key}: {value}\r\n" for key, value in named.items())
    return f"POST /mcp/a HTTP/{version}\r\n{lines}\r\n".encode() + body


async def read(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers.get("content-length", 0)))


@asynccontextmanager
async def line_to() -> AsyncGenerator[tuple[Parrot, Lane, asyncio.StreamReader, asyncio.StreamWriter]]:
    async with parrot() as bird, lane(agent("a", MCPServer.http("x", bird.url)), is_fast=True) as up:
        async with raw(up.address.url("a")) as http:
            await http.modern("tools/list")
        reader, writer = await asyncio.open_connection("127.0.0.1", up.address.port)
        try:
            with anyio.fail_after(20):
                yield bird, up, reader, writer
        finally:
            writer.close()
            await writer.wait_closed()


async def test_a_uvicorn_that_is_not_as_expected_serves_without_the_fast_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = RequestResponseCycle.__init__

    def other(self: Any, *, another: object = None, **given: Any) -> None:  # noqa: ANN401 - as uvicorn calls it
        del another
        plain(self, **given)

    monkeypatch.setattr(RequestResponseCycle, "__init__", other)
    async with line_to() as (_, up, reader, writer):
        writer.write(request(1))
        assert (await read(reader))[0] == 200
        assert up.taken() == {"full": 1}


async def test_one_connection_serves_many_calls() -> None:
    async with line_to() as (bird, up, reader, writer):
        for ident in range(20):
            writer.write(request(ident))
            status, _, body = await read(reader)
            assert (status, json.loads(body)["id"]) == (200, ident)
        assert up.taken() == {"fast": 20}
        assert bird.calls["say"] == 20


async def test_pipelined_calls_are_answered_in_order() -> None:
    async with line_to() as (_, _, reader, writer):
        writer.write(b"".join(request(ident) for ident in range(10)))
        found = [json.loads((await read(reader))[2])["id"] for _ in range(10)]
        assert found == list(range(10))


async def test_a_call_in_small_pieces_is_one_call() -> None:
    async with line_to() as (bird, up, reader, writer):
        data = request(7, text="x" * 3000)
        for start in range(0, len(data), 97):
            writer.write(data[start : start + 97])
            await writer.drain()
            await asyncio.sleep(0)
        assert json.loads((await read(reader))[2])["id"] == 7
        assert bird.calls["say"] == 1
        assert up.taken() == {"fast": 1}


@pytest.mark.parametrize(("version", "headers"), [("1.0", {}), ("1.1", {"Connection": "close"})])
async def test_a_client_that_wants_one_answer_only_gets_it_and_the_end(version: str, headers: dict[str, str]) -> None:
    async with line_to() as (_, _, reader, writer):
        writer.write(request(1, version=version, **headers))
        status, found, _ = await read(reader)
        assert (status, found["connection"]) == (200, "close")
        assert await reader.read() == b""


async def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async with line_to() as (_, up, reader, writer):
        head, _, body = request(1, Expect="100-continue").partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(body)
        assert (await read(reader))[0] == 200
        assert up.taken() == {"full": 1}


async def test_a_body_that_is_too_long_is_refused_as_before() -> None:
    async with line_to() as (bird, _, reader, writer):
        writer.write(request(1, text="x" * (5 * 1024 * 1024)))
        assert (await read(reader))[0] == 413
        assert not bird.calls


async def test_other_requests_on_the_same_connection_are_answered_too() -> None:
    async with line_to() as (_, _, reader, writer):
        writer.write(request(1) + b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n" + request(3))
        assert [(await read(reader))[0] for _ in range(3)] == [200, 404, 200]


async def test_a_slow_call_goes_on_in_the_full_lane_without_being_sent_again() -> None:
    async with line_to() as (bird, up, _, writer):
        writer.write(request(1, "x_wait"))
        await until(lambda: bird.waiting > 0)
        await asyncio.sleep(0.5)
        assert bird.calls["wait"] == 1
        writer.close()
        await until(lambda: bird.given_up > 0 and len(up.records) > 0)
        assert [(record.lane, record.outcome) for record in up.records] == [("full", "cancelled")]
