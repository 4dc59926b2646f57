"""Requests that are meant to hurt: too long, packed, nested, contradictory, malformed. Each is refused and recorded."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import resource
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from outfitter.catalog import Agent, Effect, MCPServer, ToolFilter, ToolRule
from outfitter.gateway import StdioFront
from outfitter.testing import Script, ScriptedTool, serve_http
from outfitter.upstream import Message
from tests.gateway.kit import ACCEPT, META, MODERN, Raw, agent, gateway, raw
from tests.gateway.watched import Watched, until, watched

pytestmark = pytest.mark.anyio
LANES = pytest.mark.parametrize("is_fast", [True, False])
ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])
ECHO: Message = {"name": "x_echo", "arguments": {"text": "hi"}}
DENY = ToolRule(("echo",), Effect.DENY, arguments={"/text": ("secret*",)}, reason="not that")
MODERN_META: Message = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
ROUTING = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "x_echo"}


def called(params: Message, ident: object = 1) -> Message:
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


@asynccontextmanager
async def ruled(folder: Path, *, is_fast: bool) -> AsyncGenerator[tuple[Watched, Any]]:
    """A gateway that records, warm, with a rule on arguments, and its server."""
    async with serve_http(Script("x")) as served:
        strict = replace(agent("a", MCPServer.http("x", served.url)), rules=(DENY,))
        async with watched(folder, strict, is_fast=is_fast) as running:
            async with raw(running.address.url("a")) as http:
                for _ in range(2):
                    await http.modern("tools/call", ECHO)
            yield running, served


def headers_of(http: Raw, era: str) -> dict[str, str]:
    return {**ACCEPT, **http.headers, **(ROUTING if era == "modern" else {})}


async def send(http: Raw, data: bytes | AsyncIterator[bytes], era: str, **headers: str) -> int:
    body = io.BytesIO(data) if isinstance(data, bytes) else data
    async with http.http.post(http.url, data=body, headers={**headers_of(http, era), **headers}) as answer:
        return answer.status


@LANES
@ERAS
@pytest.mark.promise("G25")
@pytest.mark.parametrize("is_chunked", [True, False])
async def test_a_body_over_the_limit_is_refused_before_any_rule_sees_it(
    tmp_path: Path, era: str, *, is_fast: bool, is_chunked: bool
) -> None:
    # What a rule would refuse stands after the limit.
    long = json.dumps(called({**ECHO, "_meta": MODERN_META, "arguments": {"a": "x" * (5 << 20), "text": "secret"}}))

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(long), 1 << 18):
            yield long[start : start + (1 << 18)].encode()

    async with ruled(tmp_path, is_fast=is_fast) as (running, served), raw(running.address.url("a")) as http:
        if era == "legacy":
            await http.handshake()
        assert await send(http, pieces() if is_chunked else long.encode(), era) == 413
        assert served.ledger.requests["tools/call"] == 2
        assert "x_echo" in str((await http.modern("tools/list"))[1] if era == "modern" else running.records())
        if era == "modern":
            assert (running.records()[-1]["outcome"], running.records()[-1]["code"]) == ("refused", "413")
        assert not [one for one in running.records()[2:] if one.get("decision")], "no rule was asked"


@LANES
@pytest.mark.promise("G25")
async def test_a_body_that_stops_in_the_middle_is_no_call(tmp_path: Path, *, is_fast: bool) -> None:
    whole = json.dumps(called({**ECHO, "_meta": MODERN_META})).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in {**ACCEPT, **ROUTING, "host": "localhost"}.items())
    async with ruled(tmp_path, is_fast=is_fast) as (running, served):
        _, writer = await asyncio.open_connection("127.0.0.1", running.address.port)
        # All of a call is there, but more was announced.
        writer.write(f"POST /mcp/a HTTP/1.1\r\n{head}content-length: {len(whole) + 10}\r\n\r\n".encode() + whole)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        async with raw(running.address.url("a")) as http:
            await http.modern("tools/call", ECHO)
        assert served.ledger.requests["tools/call"] == 3
        assert not [one for one in running.records() if one["outcome"] not in {"done", "refused"}]


def bomb(mebibytes: int) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)), packer.flush()])


@LANES
@ERAS
@pytest.mark.promise("G26")
async def test_a_packed_request_is_never_unpacked(tmp_path: Path, era: str, *, is_fast: bool) -> None:
    good = gzip.compress(json.dumps(called({**ECHO, "_meta": MODERN_META})).encode())
    packed = bomb(500)  # it takes seconds, in which nothing else is done here
    async with ruled(tmp_path, is_fast=is_fast) as (running, served), raw(running.address.url("a")) as http:
        if era == "legacy":
            await http.handshake()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for body in (packed, good):
            assert await send(http, body, era, **{"content-encoding": "gzip"}) == 400
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
        assert served.ledger.requests["tools/call"] == 2


@asynccontextmanager
async def answering(body: bytes, **headers: str) -> AsyncGenerator[str]:
    """A server whose second call, and every later one, is answered by these bytes; ``!ID!`` is the request's id."""
    calls: list[int] = []

    async def post(request: web.Request) -> web.Response:
        message: Message = await request.json()
        reply: Message = {"jsonrpc": "2.0", "id": message.get("id")}
        found: dict[str, Message] = {
            "server/discover": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}},
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
        }
        if message["method"] == "tools/call":
            calls.append(1)
            if len(calls) > 1:
                said = body.replace(b"!ID!", str(message["id"]).encode())
                return web.Response(body=said, content_type="application/json", headers=headers)
        result = found.get(message["method"], {"content": [{"type": "text", "text": "hi"}]})
        return web.json_response({**reply, "result": {"resultType": "complete", **result}})

    app = web.Application()
    app.router.add_post("/mcp", post)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


@LANES
@pytest.mark.promise("G26", "G27")
@pytest.mark.parametrize("kind", ["packed", "nested"])
async def test_an_answer_that_is_a_bomb_is_refused_and_the_gateway_lives(
    tmp_path: Path, kind: str, *, is_fast: bool
) -> None:
    deep = b'{"jsonrpc": "2.0", "id": !ID!, "result": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    body, headers = (bomb(200), {"content-encoding": "gzip"}) if kind == "packed" else (deep, {})
    async with (
        answering(body, **headers) as url,
        watched(tmp_path, agent("a", MCPServer.http("x", url)), is_fast=is_fast) as running,
        raw(running.address.url("a")) as http,
    ):
        assert "hi" in str((await http.modern("tools/call", ECHO))[1])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _, answer = await http.modern("tools/call", ECHO)
        assert answer["result"]["_meta"]["outfitter/outcome"]["code"] == "protocol_violation"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 96 * 1024
        assert (await http.modern("tools/list"))[0] == 200
        assert [one["outcome"] for one in running.records()] == ["done", "failed"]


@LANES
@ERAS
@pytest.mark.promise("G27")
async def test_arguments_of_100_000_levels_are_refused_and_the_gateway_lives(
    tmp_path: Path, era: str, *, is_fast: bool
) -> None:
    flat = json.dumps(called({**ECHO, "_meta": MODERN_META, "arguments": {"text": "!"}}))
    deep = flat.replace('"!"', "[" * 100_000 + "]" * 100_000).encode()
    async with ruled(tmp_path, is_fast=is_fast) as (running, served), raw(running.address.url("a")) as http:
        if era == "legacy":
            await http.handshake()
        assert await send(http, deep, era) == 400
        assert served.ledger.requests["tools/call"] == 2
        ask = http.legacy if era == "legacy" else http.modern
        assert "hi" in str((await ask("tools/call", ECHO))[1])


# ── every refused call is recorded ──

REGION: Message = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
REFUSED: dict[str, tuple[Message, dict[str, str], str, str]] = {
    "no _meta": ({"params": {**ECHO, "_meta": {}}}, {}, "-32602", "x_echo"),
    "another method": ({}, {"mcp-method": "tools/list"}, "-32020", "x_echo"),
    "another name": ({}, {"mcp-name": "x_add"}, "-32020", "x_echo"),
    "another name, wrapped": ({}, {"mcp-name": "=?base64?eF9hZGQ=?="}, "-32020", "x_echo"),
    "another version": (
        {"params": {**ECHO, "_meta": {**MODERN_META, f"{META}protocolVersion": "1999-01-01"}}},
        {"mcp-protocol-version": "1999-01-01"}, "-32022", "x_echo",
    ),
    "another argument": ({"params": {"name": "x_where", "arguments": {"region": "eu"}, "_meta": MODERN_META}},
        {"mcp-name": "x_where", "mcp-param-region": "us"}, "-32020", "x_where"),
    "a state of nobody": (
        {"params": {**ECHO, "_meta": MODERN_META, "requestState": "outfitter1.a.b"}}, {}, "-32602", "x_echo",
    ),
    "arguments in a list": ({"params": {**ECHO, "_meta": MODERN_META, "arguments": []}}, {}, "-32602", "x_echo"),
    "no name": ({"params": {"_meta": MODERN_META}}, {}, "-32602", ""),
    "params in a list": ({"params": []}, {}, "-32600", ""),
    "another type": ({}, {"content-type": "text/plain"}, "415", "x_echo"),
    "no way to answer": ({}, {"accept": "text/html"}, "406", "x_echo"),
}  # fmt: skip


@LANES
@pytest.mark.promise("RECORD-REFUSED")
@pytest.mark.parametrize("case", REFUSED)
async def test_a_call_that_is_refused_for_its_form_is_recorded_once(
    tmp_path: Path, case: str, *, is_fast: bool
) -> None:
    body, headers, code, shown = REFUSED[case]
    tools = (ScriptedTool("echo"), ScriptedTool("where", schema=REGION, kind="echo"))
    async with (
        serve_http(Script("x", tools=tools)) as served,
        watched(tmp_path, agent("a", MCPServer.http("x", served.url)), is_fast=is_fast) as running,
        raw(running.address.url("a")) as http,
    ):
        message = {**called({**ECHO, "_meta": MODERN_META}), **body}
        await http.modern("tools/call", ECHO)
        assert 400 <= await send(http, json.dumps(message).encode(), "modern", **headers) < 500
        first, record = running.records()
        assert (record["outcome"], record["code"], record.get("shown", "")) == ("refused", code, shown)
        assert (record["agent"], record["token_id"], record["call_id"]) == ("a", "open", record["call_id"])
        assert record["call_id"] != first["call_id"]
        assert served.ledger.requests["tools/call"] == 1, "nothing was sent"


@pytest.mark.promise("RECORD-REFUSED")
@pytest.mark.parametrize(
    ("params", "code"), [({"arguments": {}}, "-32602"), ({**ECHO, "arguments": 7}, "-32602"), ([], "-32600")]
)
async def test_a_malformed_call_of_the_handshake_era_is_recorded_too(
    tmp_path: Path, params: Message, code: str
) -> None:
    async with ruled(tmp_path, is_fast=True) as (running, _), raw(running.address.url("a")) as http:
        await http.handshake()
        await http.post(called(params))
        assert (running.records()[-1]["outcome"], running.records()[-1]["code"]) == ("refused", code)
        http.headers["mcp-session-id"] = "never-issued"
        assert (await http.legacy("tools/call", ECHO))[0] == 404
        assert (running.records()[-1]["outcome"], running.records()[-1]["code"]) == ("refused", "404")
        assert len(running.records()) == 4


@pytest.mark.promise("RECORD-REFUSED")
async def test_other_refused_requests_are_no_calls(tmp_path: Path) -> None:
    async with ruled(tmp_path, is_fast=True) as (running, _), raw(running.address.url("a")) as http:
        assert (await http.modern("tools/list", mcp_method="tools/call"))[0] == 400
        assert (await http.modern("prompts/get", {"name": "nothing"}))[0] == 400
        assert (await http.post("text"))[0] == 400
        assert len(running.records()) == 2


# ── one answer, whichever way a call comes ──


async def by_stdio(running: Watched, name: str, *messages: Message) -> list[Message]:
    """What an endpoint on a pipe answers, by id."""
    said: list[Message] = []

    def is_answered(ident: object) -> bool:
        return any(one.get("id") == ident for one in said)

    async def lines() -> AsyncIterator[bytes]:
        for message in messages:
            yield json.dumps(message).encode()
            await until(partial(is_answered, message["id"]))

    async def write(line: bytes) -> None:
        said.append(json.loads(line))

    await StdioFront(running.desk, name).serve(lines(), write)
    return said


def plain(answer: Any) -> Any:  # noqa: ANN401 - any JSON value
    """An answer without what every era adds to it."""
    if "error" in answer:
        return answer["error"]
    result: Message = answer["result"]
    return result["isError"], result["content"], result["_meta"]["outfitter/outcome"]


@pytest.mark.promise("G30")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("echo", {"text": "secret plan"}), ("add", {"a": 1, "b": 2}), ("nowhere", {}), ("sleep", {"seconds": 0})],
)
async def test_what_is_denied_is_denied_alike_on_every_way(tmp_path: Path, name: str, arguments: Message) -> None:
    rules = (DENY, ToolRule(("sleep",), Effect.ASK, reason="a person must look"))
    async with serve_http(Script("x")) as served:
        kept = agent("a", MCPServer.http("x", served.url), x=ToolFilter(exclude=("add",)))
        strict: Agent = replace(kept, rules=rules)
        async with watched(tmp_path, strict, is_fast=True) as running, raw(running.address.url("a", "x")) as http:
            params: Message = {"name": name, "arguments": arguments}
            # The second call of each kind finds everything known.
            answers: list[Any] = [(await http.modern("tools/call", params))[1] for _ in range(2)]
            await http.handshake()
            answers += [(await http.legacy("tools/call", params))[1] for _ in range(2)]
            _, events, _ = await http.post(called(params), accept="text/event-stream, application/json")
            answers.append(json.loads(events.partition("data: {")[2].partition("\n")[0].join(["{", ""])))
            messages = [
                {**called({**params, "name": f"x_{name}", "_meta": MODERN_META}), "id": 1},
                {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
                {**called({**params, "name": f"x_{name}"}), "id": 3},
            ]
            said = await by_stdio(running, "a", *messages)
            answers += [one for one in said if one.get("id") in {1, 3}]
            told = [json.dumps(plain(one)).replace(f"x_{name}", name) for one in answers]
            assert len(told) == 7
            assert set(told) == {told[0]}
            assert served.ledger.requests["tools/call"] == 0
            assert len({one["outcome"] for one in running.records()}) == 1
            assert len(running.records()) == 7


@pytest.mark.promise("H19")
@pytest.mark.parametrize("value", ["eu\r\nX-Admin: 1", "çé 漢", " padded ", "=?base64?eA==?="])
async def test_an_argument_that_travels_as_a_header_is_wrapped(value: str) -> None:
    tools = (ScriptedTool("where", schema=REGION, kind="headers"),)
    async with (
        serve_http(Script("x", tools=tools, eras=("modern",))) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a", "x")) as http,
    ):
        await http.handshake()
        for _ in range(2):
            _, answer = await http.legacy("tools/call", {"name": "where", "arguments": {"region": value}})
            found: dict[str, str] = answer["result"]["structuredContent"]["headers"]
            sent = {name.lower(): text for name, text in found.items()}
            assert sent["mcp-param-region"].startswith("=?base64?")
            assert "x-admin" not in sent
        with anyio.fail_after(5):
            assert (await http.legacy("tools/list"))[0] == 200
