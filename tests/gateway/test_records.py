"""Every call leaves one record before its answer goes out, and a call that cannot be recorded does not happen."""

from __future__ import annotations

import resource
from collections.abc import ItemsView
from dataclasses import replace
from pathlib import Path
from typing import Literal

import anyio
import pytest

from outfitter.catalog import Agent, Effect, MCPServer, ToolFilter, ToolRule
from outfitter.gateway import CallRecord, Keeping, Metrics, Recorder, digest_of
from outfitter.testing import Hang, Script, ScriptedTool, When, serve_http
from tests.gateway.kit import agent, raw
from tests.gateway.watched import until, watched

pytestmark = pytest.mark.anyio
OUTCOMES: tuple[Literal["done", "denied"], ...] = ("done", "done", "denied")
ECHO: dict[str, object] = {"name": "echo", "arguments": {"text": "hi"}}
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def ruled(served_url: str, *rules: ToolRule) -> Agent:
    return replace(agent("a", MCPServer.http("x", served_url)), rules=rules)


@pytest.mark.promise("RECORD-EVERY")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_every_call_is_recorded_whatever_came_of_it(tmp_path: Path, era: str) -> None:
    async with serve_http(Script("x")) as served:
        deny = ToolRule(("echo",), Effect.DENY, arguments={"/text": ("secret*",)}, reason="not that")
        async with watched(tmp_path, ruled(served.url, deny)) as running, raw(running.address.url("a")) as http:
            if era == "legacy":
                await http.handshake()
            call = http.modern if era == "modern" else http.legacy
            for name, arguments in (
                ("x_echo", {"text": "hi"}),
                ("x_echo", {"text": "secret stuff"}),
                ("x_nowhere", {}),
                ("x_add", {"a": "one"}),
            ):
                before = len(running.records())
                await call("tools/call", {"name": name, "arguments": arguments})
                assert len(running.records()) == before + 1, "it is there when the answer is"
            done, denied, unknown, failed = running.records()
    assert (done["outcome"], done["decision"], done["server"], done["tool"]) == ("done", "allow", "x", "echo")
    assert (done["agent"], done["token_id"], done["shown"]) == ("a", "open", "x_echo")
    assert done["digest"] == digest_of({"text": "hi"})
    assert done["bytes_in"] == len('{"text":"hi"}')
    assert done["bytes_out"] > 10
    assert 0 < done["duration"] < 60
    assert (denied["outcome"], denied["decision"], denied["rule"]) == ("denied", "deny", denied["rule"])
    assert "not that" in denied["rule"]
    assert (unknown["outcome"], unknown.get("server", "")) == ("unknown", "")
    assert failed["outcome"] == "tool_error"
    assert len({one["call_id"] for one in (done, denied, unknown, failed)}) == 4


@pytest.mark.parametrize("is_fast", [True, False])
async def test_both_lanes_leave_the_same_record_before_the_answer(tmp_path: Path, is_fast: bool) -> None:
    async with serve_http(Script("x")) as served, watched(tmp_path, ruled(served.url), is_fast=is_fast) as running:
        async with raw(running.address.url("a")) as http:
            for count in range(1, 6):
                await http.modern("tools/call", {"name": "x_echo", "arguments": {"text": "hi"}})
                assert len(running.records()) == count
        first, *_, last = running.records()
    assert last["lane" if is_fast else "agent"] == ("fast" if is_fast else "a")
    differs = {"call_id", "started_at", "duration", "trace_id", "lane", "bytes_in", "bytes_out"}
    assert {key: value for key, value in first.items() if key not in differs} == {
        key: value for key, value in last.items() if key not in differs
    }


@pytest.mark.promise("RECORD-NO-ARGUMENTS")
async def test_arguments_are_not_kept_unless_the_agent_is_named_and_then_without_secrets(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"pin": {"type": "string", "format": "password"}}}
    script = Script("x", tools=(ScriptedTool("echo", schema=schema),))
    async with serve_http(script) as served:
        params = {"name": "echo", "arguments": {"text": "hello", "password": "p4ss", "pin": "1234"}}
        for folder, keeping in (("off", None), ("on", Keeping(frozenset("a"), frozenset("a")))):
            async with (
                watched(tmp_path / folder, ruled(served.url), keeping=keeping) as running,
                raw(running.address.url("a", "x")) as http,
            ):
                await http.modern("tools/call", params)
                (record,) = running.records()
            if keeping is None:
                assert "hello" not in str(record)
            else:
                assert record["arguments"]["text"] == "hello"
                assert "p4ss" not in str(record["arguments"])
                assert "1234" not in str(record["arguments"])
                assert "result" in record


async def test_the_digest_does_not_depend_on_how_arguments_are_written() -> None:
    assert digest_of(b'{"b": 1, "a": [true, "\\u00e4"]}') == digest_of({"a": [True, "ä"], "b": 1})
    assert digest_of(b'{"a": 1}') != digest_of(b'{"a": 2}')


@pytest.mark.promise("TRACE-PASSED-ON")
@pytest.mark.parametrize("given_in", ["meta", "header"])
async def test_the_trace_of_the_caller_goes_on_to_the_server_and_into_the_record(tmp_path: Path, given_in: str) -> None:
    async with serve_http(Script("x")) as served, watched(tmp_path, ruled(served.url)) as running:
        async with raw(running.address.url("a", "x")) as http:
            if given_in == "header":
                http.headers |= {"traceparent": PARENT, "tracestate": "vendor=1"}
                _, said = await http.modern("tools/call", {"name": "headers", "arguments": {}})
            else:
                await http.handshake()
                params = {
                    "name": "headers",
                    "arguments": {},
                    "_meta": {"traceparent": PARENT, "tracestate": "vendor=1"},
                }
                _, said = await http.legacy("tools/call", params)
        (record,) = running.records()
    assert (record["trace_id"], record["parent_id"]) == (PARENT[3:35], PARENT[36:52])
    told = said["result"]["structuredContent"]["meta"]
    assert told["tracestate"] == "vendor=1"
    assert told["traceparent"] == f"00-{record['trace_id']}-{record['span_id']}-01"
    assert record["span_id"] != record["parent_id"]


@pytest.mark.parametrize("given", ["", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "ff" + PARENT[2:], PARENT[:-3], "x"])
async def test_a_trace_that_is_none_is_left_out(tmp_path: Path, given: str) -> None:
    async with serve_http(Script("x")) as served, watched(tmp_path, ruled(served.url)) as running:
        async with raw(running.address.url("a", "x")) as http:
            http.headers["traceparent"] = given
            status, _ = await http.modern("tools/call", {"name": "echo", "arguments": {}})
        (record,) = running.records()
    assert status == 200
    assert record["trace_id"] == record["call_id"]


async def test_a_call_whose_client_goes_away_is_recorded(tmp_path: Path) -> None:
    script = Script("x", faults=(Hang(When(name="echo")),))
    async with serve_http(script) as served, watched(tmp_path, ruled(served.url)) as running:
        async with raw(running.address.url("a", "x")) as http, anyio.create_task_group() as group:
            await http.modern("tools/list")
            group.start_soon(http.modern, "tools/call", ECHO)
            await until(lambda: running.desk.turnstile.under_way == 1)
            group.cancel_scope.cancel()
        await until(lambda: bool(running.records()))
        (record,) = running.records()
    assert record["outcome"] == "cancelled"


@pytest.mark.promise("RECORD-CLOSED", "F23")
async def test_a_full_disk_refuses_calls_and_they_come_back_with_the_space(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with (
        serve_http(Script("x")) as served,
        watched(tmp_path, ruled(served.url)) as running,
        raw(running.address.url("a", "x")) as http,
    ):
        await http.modern("tools/list")
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            _, refused = await http.modern("tools/call", ECHO)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert refused["error"]["data"]["code"] == "not_recorded"
        assert "cannot be recorded" in refused["error"]["message"]
        assert served.ledger.requests["tools/call"] == 0, "what cannot be recorded does not happen"
        _, answered = await http.modern("tools/call", ECHO)
        assert "hi" in str(answered["result"])
        assert len(running.records()) == 1


class Away(dict[str, tuple[str, ...]]):
    """Conditions of a rule that cannot be read any more once they are away."""

    is_away = False

    def items(self) -> ItemsView[str, tuple[str, ...]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The conditions, while they are there."""
        if self.is_away:
            raise RuntimeError("the store of permissions is away")
        return super().items()


@pytest.mark.promise("G34")
async def test_a_rule_that_fails_refuses(tmp_path: Path) -> None:
    away = Away({"/text": ("secret*",)})
    rule = ToolRule(("echo",), Effect.DENY, arguments=away)
    async with (
        serve_http(Script("x")) as served,
        watched(tmp_path, ruled(served.url, rule)) as running,
        raw(running.address.url("a", "x")) as http,
    ):
        await http.modern("tools/list")
        away.is_away = True
        _, said = await http.modern("tools/call", {"name": "echo", "arguments": {}})
        (record,) = running.records()
    assert said["result"]["isError"] is True
    assert record["outcome"] == "denied"
    assert served.ledger.requests["tools/call"] == 0


async def test_a_tool_outside_the_filter_is_recorded_as_unknown(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        narrow = agent("a", MCPServer.http("x", served.url), x=ToolFilter(include=("echo",)))
        async with watched(tmp_path, narrow) as running, raw(running.address.url("a", "x")) as http:
            await http.modern("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
            (record,) = running.records()
    assert (record["outcome"], record["shown"]) == ("unknown", "add")


def _call(outcome: Literal["done", "denied"] = "done", agent: str = "a", call_id: str = "c") -> CallRecord:
    return CallRecord(
        call_id=call_id, agent=agent, token_id="t", started_at=0.0, duration=0.02, outcome=outcome, server="s"
    )


async def test_numbers_stand_in_the_text_format_of_prometheus() -> None:
    metrics = Metrics()
    for outcome in OUTCOMES:
        metrics.count('a"b', "s", outcome, 0.02)
    metrics.count_turned(401)
    lines = metrics.text().splitlines()
    assert 'outfitter_calls_total{agent="a\\"b",server="s",outcome="done"} 2' in lines
    assert 'outfitter_turned_total{status="401"} 1' in lines
    assert 'outfitter_call_seconds_bucket{server="s",le="0.01"} 0' in lines
    assert 'outfitter_call_seconds_bucket{server="s",le="0.025"} 3' in lines
    assert 'outfitter_call_seconds_count{server="s"} 3' in lines


async def test_a_listener_that_does_not_keep_up_holds_nobody_up() -> None:
    recorder = Recorder()
    with recorder.listening() as heard:
        for number in range(5000):
            recorder.record(_call(call_id=str(number)))
        assert len(heard) == 1000
        assert heard[-1].call_id == "4999"
    recorder.record(_call())
    assert len(heard) == 1000


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_both_lanes_write_the_same_down(tmp_path: Path, era: str) -> None:
    passing = {"call_id", "trace_id", "started_at", "duration", "lane", "token_id"}
    written: dict[bool, list[dict[str, object]]] = {}
    async with serve_http(Script("x")) as served:
        for is_fast in (True, False):
            folder = tmp_path / str(is_fast)
            async with watched(folder, ruled(served.url), is_fast=is_fast) as running:
                async with raw(running.address.url("a", "x")) as http:
                    if era == "legacy":
                        await http.handshake()
                    call = http.modern if era == "modern" else http.legacy
                    await call("tools/list")
                    await call("tools/call", ECHO)
                    await call("tools/call", {"name": "add", "arguments": {"b": "one", "a": 1}})
                written[is_fast] = running.records()
    assert [record["lane"] for record in written[True]] == ["fast", "fast"]
    fast, full = (
        [{k: v for k, v in r.items() if k not in passing} for r in written[is_fast]] for is_fast in (True, False)
    )
    assert fast == full


@pytest.mark.parametrize("is_fast", [True, False])
async def test_what_a_server_claims_about_the_outcome_is_not_believed(tmp_path: Path, *, is_fast: bool) -> None:
    claim = {"outfitter/outcome": {"code": "denied"}, "mine": 1}
    lying = ScriptedTool("lie", kind="answer", result={"content": [], "isError": True, "_meta": claim})
    async with (
        serve_http(Script("x", tools=(lying,))) as served,
        watched(tmp_path, ruled(served.url), is_fast=is_fast) as running,
    ):
        async with raw(running.address.url("a", "x")) as http:
            await http.modern("tools/list")
            _, said = await http.modern("tools/call", {"name": "lie", "arguments": {}})
        (record,) = running.records()
    assert (record["outcome"], record["code"]) == ("tool_error", "tool_error")
    assert said["result"]["_meta"]["mine"] == 1
    assert "outfitter/outcome" not in said["result"]["_meta"]
