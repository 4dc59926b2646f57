"""A gateway as a process beside a real OTLP receiver: the spans of its calls, and calls that do not depend on them."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import aiohttp
import pytest

from outfitter.testing import Script, serve_http
from tests.gateway.kit import Raw, raw
from tests.gateway.watched import until
from tests.telemetry.kit import at_start, issue_token, receiver, started, write_catalog

pytestmark = pytest.mark.anyio
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ECHO: dict[str, object] = {"name": "echo", "arguments": {"text": "hi"}}


async def call_often(http: Raw, count: int) -> None:
    for _ in range(count):
        status, said = await http.modern("tools/call", ECHO)
        assert status == 200
        assert "hi" in str(said)


@pytest.mark.promise("SPAN-SAME-IDS")
@pytest.mark.parametrize("given_in", ["meta", "header"])
async def test_the_span_stands_between_the_callers_and_the_servers(tmp_path: Path, given_in: str) -> None:
    async with serve_http(Script("x")) as served, receiver() as otlp:
        write_catalog(tmp_path, served.url)
        traceparent = f"00-{TRACE}-{CALLER}-01"
        before = time.time_ns()
        async with (
            started(tmp_path, "--open", OTEL_EXPORTER_OTLP_ENDPOINT=otlp.url, OTEL_SERVICE_NAME="front") as gateway,
            raw(f"{gateway.url}/mcp/a/x") as http,
        ):
            if given_in == "header":
                _, said = await http.modern("tools/call", {"name": "headers", "arguments": {}}, traceparent=traceparent)
            else:
                await http.handshake()
                params = {"name": "headers", "arguments": {}, "_meta": {"traceparent": traceparent}}
                _, said = await http.legacy("tools/call", params)
            (received,) = await otlp.having(1)
            unsampled = f"00-{TRACE}-{CALLER}-00"
            await http.modern("tools/call", ECHO, traceparent=unsampled)
            assert await gateway.stop() == 0
    assert otlp.spans == [received], "a trace that is not sampled stays so"
    trace, span, parent = received.ids
    assert (trace, parent) == (TRACE, CALLER)
    assert said["result"]["structuredContent"]["meta"]["traceparent"] == f"00-{trace}-{span}-01"
    assert (received.span.name, received.span.kind) == ("tools/call headers", received.span.SPAN_KIND_SERVER)
    assert before < received.span.start_time_unix_nano < received.span.end_time_unix_nano < time.time_ns()
    assert received.span.status.code == 0
    assert received.resource["service.name"] == "front"
    told = received.attributes
    assert len(told.pop("outfitter.call_id")) == 32
    assert told == {
        "mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "headers",
        "outfitter.agent": "a", "outfitter.server": "x", "outfitter.decision": "allow", "outfitter.outcome": "done",
        "outfitter.lane": "full",
    }  # fmt: skip


async def test_a_refused_call_is_a_failed_span_with_its_reason(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served, receiver() as otlp:
        write_catalog(tmp_path, served.url, {"tools": ["echo"], "effect": "deny", "reason": "not on Fridays"})
        async with (
            started(tmp_path, "--open", OTEL_EXPORTER_OTLP_ENDPOINT=otlp.url) as gateway,
            raw(f"{gateway.url}/mcp/a/x") as http,
        ):
            await http.modern("tools/call", ECHO)
            await http.modern("tools/call", {"name": "nowhere", "arguments": {}})
            await http.modern("tools/call", {"name": "add", "arguments": {"a": "one"}})
            denied, unknown, failed = await otlp.having(3)
            await gateway.stop()
    assert denied.span.name == "tools/call echo"
    assert denied.span.status.code == denied.span.status.STATUS_CODE_ERROR
    assert "not on Fridays" in denied.span.status.message
    assert denied.attributes["error.type"] == "denied"
    assert (denied.attributes["outfitter.decision"], denied.attributes["outfitter.outcome"]) == ("deny", "denied")
    assert "not on Fridays" in denied.attributes["outfitter.rule"]
    assert unknown.span.name == "tools/call", "the name is the client's own"
    assert "nowhere" not in str(unknown.span)
    assert unknown.attributes["rpc.response.status_code"] == unknown.attributes["error.type"]
    assert failed.attributes["error.type"] == "tool_error"
    assert denied.resource["service.name"] == "outfitter"


async def test_calls_of_both_lanes_leave_spans_that_are_roots_of_their_own_traces(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served, receiver() as otlp:
        write_catalog(tmp_path, served.url)
        async with (
            started(tmp_path, "--open", OTEL_EXPORTER_OTLP_ENDPOINT=otlp.url) as gateway,
            raw(f"{gateway.url}/mcp/a/x") as http,
        ):
            await call_often(http, 20)
            assert await gateway.stop() == 0
        spans = otlp.spans
    assert len(spans) == 20, "what waited at the end went out"
    assert {one.attributes["outfitter.lane"] for one in spans} == {"fast", "full"}
    assert len({one.ids[0] for one in spans}) == len({one.ids[1] for one in spans}) == 20
    assert all(one.ids == (one.attributes["outfitter.call_id"], one.ids[1], "") for one in spans)


@pytest.mark.promise("SPAN-NO-SECRETS")
async def test_no_span_holds_a_secret_an_argument_or_a_result(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served, receiver() as otlp:
        write_catalog(tmp_path, served.url, headers={"X-Api-Key": "sk-of-the-server"})
        token = issue_token(tmp_path)
        given = {"OTEL_EXPORTER_OTLP_ENDPOINT": otlp.url, "OTEL_EXPORTER_OTLP_HEADERS": "x-otlp-key=sk-of-the-receiver"}
        async with (
            started(tmp_path, "--keep-arguments", "a", "--keep-results", "a", **given) as gateway,
            raw(f"{gateway.url}/mcp/a/x", token) as http,
        ):
            await http.modern("tools/call", {"name": "echo", "arguments": {"text": "whispered"}})
            _, said = await http.modern("tools/call", {"name": "headers", "arguments": {}})
            await otlp.having(2)
            await gateway.stop()
    assert "sk-of-the-server" in str(said), "the server got it"
    assert otlp.headers[0]["x-otlp-key"] == "sk-of-the-receiver"
    sent = b"".join(otlp.bodies)
    for secret in (token, "sk-of-the-server", "sk-of-the-receiver", "whispered"):
        assert secret.encode() not in sent
        assert secret not in gateway.said


@pytest.mark.promise("SPAN-FAILS-OPEN")
async def test_a_receiver_that_does_not_answer_holds_up_neither_calls_nor_the_end(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served, receiver(is_slow=True) as otlp:
        write_catalog(tmp_path, served.url)
        async with (
            started(tmp_path, "--open", OTEL_EXPORTER_OTLP_ENDPOINT=otlp.url) as gateway,
            raw(f"{gateway.url}/mcp/a/x") as http,
        ):
            await call_often(http, 1)
            await until(lambda: len(otlp.bodies) == 1)
            await call_often(http, 30)
            assert otlp.spans == [], "it still has not answered"
            began = time.monotonic()
            assert await gateway.stop() == 0
            assert time.monotonic() - began < 8
    assert "did not take the last spans in time" in gateway.said


@pytest.mark.promise("SPAN-FAILS-OPEN")
async def test_a_receiver_that_is_not_there_is_told_of_once_and_its_losses_are_counted(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{taken.getsockname()[1]}"
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": place, "OTEL_EXPORTER_OTLP_TIMEOUT": "0.2"}
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with (
            started(tmp_path, "--open", **given) as gateway,
            raw(f"{gateway.url}/mcp/a/x") as http,
            aiohttp.ClientSession() as plain,
        ):
            for lost in (1, 2, 3):
                await call_often(http, 1)
                told = ""
                while f"outfitter_spans_dropped_total {lost}" not in told:
                    told = await (await plain.get(f"{gateway.url}/metrics")).text()
            assert await gateway.stop() == 0
    assert gateway.said.count("spans do not reach") == 1
    assert f"spans do not reach {place}: no answer" in gateway.said
    assert gateway.said.count("\n") == 1, gateway.said


async def test_a_receiver_that_refuses_is_told_of_with_its_answer_and_so_is_its_change_of_mind(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served, receiver() as otlp:
        write_catalog(tmp_path, served.url)
        otlp.status = 401
        async with (
            started(tmp_path, "--open", OTEL_EXPORTER_OTLP_ENDPOINT=otlp.url) as gateway,
            raw(f"{gateway.url}/mcp/a/x") as http,
        ):
            await call_often(http, 1)
            await otlp.having(1)
            otlp.status = 200
            await call_often(http, 1)
            await otlp.having(2)
            await gateway.stop()
    assert gateway.said.splitlines() == [
        f"spans do not reach {otlp.url}: the answer was HTTP 401; calls go on without them",
        f"spans reach {otlp.url} again",
    ]


@pytest.mark.promise("SPAN-NOTHING")
@pytest.mark.parametrize(
    "given", [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}]
)
async def test_where_no_spans_are_wanted_opentelemetry_is_not_imported(tmp_path: Path, given: dict[str, str]) -> None:
    code = (
        "import atexit, pathlib, sys\n"
        "@atexit.register\n"
        "def tell():\n"
        f"    pathlib.Path({str(tmp_path / 'modules')!r}).write_text(' '.join(sys.modules))\n"
    )
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with (
            started(tmp_path, "--open", **given, **at_start(tmp_path, code)) as gateway,
            raw(f"{gateway.url}/mcp/a/x") as http,
        ):
            await call_often(http, 2)
            assert await gateway.stop() == 0
    modules = (tmp_path / "modules").read_text().split()
    assert "outfitter.telemetry" in modules
    assert not [name for name in modules if name.startswith(("opentelemetry", "google.protobuf", "requests"))]
    assert gateway.said == ""


@pytest.mark.parametrize(
    ("code", "given", "told"),
    [
        ("import sys; sys.modules['opentelemetry.sdk'] = None", {}, "(pip install 'outfitter[otel]')"),
        ("", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTLP is spoken as http/protobuf only, not as grpc"),
        ("", {"OTEL_TRACES_SAMPLER": "jaeger_remote"}, "OTEL_TRACES_SAMPLER=jaeger_remote is not known here"),
    ],
)
async def test_what_cannot_be_set_up_is_told_and_the_gateway_runs_without(
    tmp_path: Path, code: str, given: dict[str, str], told: str
) -> None:
    wanted = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", **given, **at_start(tmp_path, code)}
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with started(tmp_path, "--open", **wanted) as gateway, raw(f"{gateway.url}/mcp/a/x") as http:
            await call_often(http, 2)
            assert await gateway.stop() == 0
    (line,) = gateway.said.splitlines()
    assert line.startswith("calls leave no spans: ")
    assert told in line
