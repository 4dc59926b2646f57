"""A server is recorded as its client talks to it, and played back: real processes, the official SDK's client."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client

from outfitter.basics import MASK
from outfitter.catalog import MCPServer
from outfitter.testing import (
    Script,
    fallback_server,
    load_cassette,
    open_replayer,
    recorded_server,
    replay_http,
    replayed_server,
    serve_http,
    stdio_server,
)
from tests.testing.clients import ERAS, LEGACY, MODERN
from tests.testing.test_well_behaved import MODE

BOUND = 60
BIN = Path(sys.executable).parent
CANARY = "CNRY-8f3a"
TIME = MCPServer.stdio("time", str(BIN / "mcp-server-time"), ("--local-timezone", "UTC"))
TOKYO = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}


@asynccontextmanager
async def talking(
    server: MCPServer, era: str, env: Mapping[str, str] | None = None, **options: Any,  # noqa: ANN401 - the SDK's own
) -> AsyncGenerator[Client]:  # fmt: skip
    """The SDK's client with a stdio server, in one era."""
    given = {"PATH": os.environ["PATH"], **(env or {})}
    target = StdioServerParameters(command=server.command or "", args=list(server.args), env=given)
    with anyio.fail_after(BOUND):
        async with Client(target, cache=None, mode=MODE[era], **options) as client:
            assert client.protocol_version == {"legacy": LEGACY, "modern": MODERN}[era]
            yield client


def plain(result: Any) -> dict[str, Any]:  # noqa: ANN401 - a result of the SDK
    """A result without what only one era says."""
    dumped = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {key: value for key, value in dumped.items() if key not in {"resultType", "ttlMs", "cacheScope", "_meta"}}


async def look_around(client: Client) -> list[dict[str, Any]]:
    """What a person would ask a clock."""
    return [plain(await client.list_tools()), plain(await client.call_tool("convert_time", TOKYO))]


@pytest.mark.promise("RECORD-REPLAY")
@pytest.mark.parametrize("recorded_in", ERAS)
@pytest.mark.anyio
async def test_a_real_server_replayed_says_what_it_said_in_both_eras(recorded_in: str, tmp_path: Path) -> None:
    file = tmp_path / "time.jsonl"
    async with talking(recorded_server(TIME, file), recorded_in) as client:
        said, info = await look_around(client), client.server_info
    assert load_cassette(file).header.era == recorded_in
    for era in ERAS:
        async with talking(replayed_server(file), era) as client:
            assert await look_around(client) == said
            assert client.server_info == info


@pytest.mark.promise("RECORD-REPLAY")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.anyio
async def test_progress_logs_questions_failures_and_changes_are_replayed(era: str, tmp_path: Path) -> None:
    file = tmp_path / "scripted.jsonl"
    live = await _say_everything(recorded_server(stdio_server(Script()), file), era)
    kept = [notice["method"] for one in load_cassette(file).exchanges for notice in one.notices]
    assert "notifications/tools/list_changed" in kept
    assert await _say_everything(replayed_server(file), era) == live
    assert live["progress"] == [1.0, 2.0]
    assert live["questions"] == ["elicitation"]


async def _say_everything(server: MCPServer, era: str) -> dict[str, Any]:
    heard: dict[str, Any] = {"progress": [], "questions": [], "logs": []}
    changed = anyio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        heard["progress"].append(progress)

    async def on_question(_context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        heard["questions"].append("elicitation")
        del params
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def on_message(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    async with talking(server, era, elicitation_callback=on_question, message_handler=on_message) as client:
        heard["tools"] = plain(await client.list_tools())
        await client.call_tool("progress", {"n": 2, "seconds": 0}, progress_callback=on_progress)
        heard["asked"] = plain(await client.call_tool("ask", {"what": "elicitation"}))
        heard["failed"] = plain(await client.call_tool("fail", {"message": "no luck"}))
        with pytest.raises(MCPError) as refused:
            await client.call_tool("rpc_error", {"code": -7, "message": "no", "data": {"why": "test"}})
        heard["error"] = (refused.value.code, refused.value.error.message, refused.value.error.data)
        if era == "legacy":
            await client.call_tool("touch", {"list": "tools"})
            await changed.wait()
        else:
            async with client.listen(tools_list_changed=True) as changes:
                await client.call_tool("touch", {"list": "tools"})
                await anext(aiter(changes))
    return heard


@pytest.mark.promise("RECORD-REPLAY")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.anyio
async def test_a_remote_server_is_recorded_and_replayed_over_http(era: str, tmp_path: Path) -> None:
    file = tmp_path / "remote.jsonl"
    async with (
        serve_http(Script()) as serving,
        talking(recorded_server(MCPServer.http("remote", serving.url), file), era) as client,
    ):
        await client.list_tools()
        said = plain(await client.call_tool("region", {"region": "eu"}))
    async with (
        open_replayer(file, lambda _event, _request, _line: None) as replayer,
        replay_http(replayer) as url,
        Client(streamable_http_client(url), cache=None, mode=MODE[era]) as client,
    ):
        await client.list_tools()
        assert plain(await client.call_tool("region", {"region": "eu"})) == said


@pytest.mark.promise("RECORD-MASKED")
@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.anyio
async def test_no_secret_reaches_the_file(way: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.jsonl"
    env = {"API_TOKEN": f"{CANARY}-env", "PLAIN": f"{CANARY}-hidden", "DB": f"postgres://ada:{CANARY}-db@host/x"}
    async with serve_http(Script()) as serving:
        remote = MCPServer.http("s", f"{serving.url}?key={CANARY}-query", headers={"X-Scope": "${PLAIN}"})
        server = recorded_server(stdio_server(Script()) if way == "stdio" else remote, file)
        args = tuple(arg.replace("$${", "${") for arg in server.args)
        more = ("--hide", "PLAIN") if way == "stdio" else ()
        at = args.index("--out")
        typed = MCPServer.stdio("s", server.command or "", (*args[:at], *more, *args[at:]))
        async with talking(typed, "legacy", {**env, "OUTFITTER_HEADER_0": f"{CANARY}-hidden"}) as client:
            for value in (*env.values(), f"{CANARY}-arg"):
                asked = {"password": value, "text": f"say {value}"}
                answer = await client.call_tool("echo", asked)
                assert answer.structured_content == asked
            await client.call_tool("headers", {})
    assert CANARY.encode() not in file.read_bytes()
    assert MASK in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.promise("F42")
@pytest.mark.anyio
async def test_an_unrecorded_call_is_a_hard_error_and_asks_nobody(tmp_path: Path) -> None:
    file, report = tmp_path / "echo.jsonl", tmp_path / "report.jsonl"
    async with serve_http(Script()) as serving:
        async with talking(recorded_server(MCPServer.http("remote", serving.url), file), "legacy") as client:
            await client.call_tool("echo", {"text": "yes"})
        hits = serving.hits
        async with talking(replayed_server(file, report=report), "legacy") as client:
            await client.call_tool("echo", {"text": "yes"})
            with pytest.raises(MCPError) as refused:
                await client.call_tool("echo", {"text": "no", "token": CANARY})
        assert serving.hits == hits
    told = refused.value.error
    assert "not recorded: tools/call echo" in told.message
    assert '"text": "no"' in told.message
    assert told.data["nearest"] == ['tools/call echo {"text": "yes"}']
    *_, line = report.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["event"] == "missed"
    assert CANARY not in told.message + line


@pytest.mark.promise("REPLAY-FALLBACK")
@pytest.mark.anyio
async def test_a_fallback_asks_the_live_server_and_adds_what_it_says(tmp_path: Path) -> None:
    file, events = tmp_path / "echo.jsonl", list[str]()
    async with serve_http(Script()) as serving:
        async with talking(recorded_server(MCPServer.http("remote", serving.url), file), "modern") as client:
            await client.call_tool("echo", {"text": "yes"})
        hits, live = serving.hits, fallback_server(serving.url)
        for round_ in (1, 2):
            async with (
                open_replayer(file, lambda event, _request, _line: events.append(event), live, adds=True) as replayer,
                replay_http(replayer) as url,
                Client(streamable_http_client(url), cache=None, mode="legacy") as client,
            ):
                assert (await client.call_tool("echo", {"text": "no"})).structured_content == {"text": "no"}
                with pytest.raises(MCPError, match="-7"):
                    await client.call_tool("rpc_error", {"code": -7, "message": "code -7"})
            if round_ == 1:
                assert serving.hits > hits
                hits = serving.hits
        assert serving.hits == hits
    assert [event for event in events if event != "answered"] == ["live", "live"]


@pytest.mark.promise("RECORD-REPLAY")
@pytest.mark.anyio
@pytest.mark.parametrize(("way", "era"), [("stdio", "legacy"), ("http", "modern")])
async def test_a_call_that_is_given_up_is_given_up_at_the_server_and_leaves_no_line(
    way: str, era: str, tmp_path: Path
) -> None:
    file = tmp_path / "given-up.jsonl"
    async with serve_http(Script()) as serving:
        live = stdio_server(Script()) if way == "stdio" else MCPServer.http("remote", serving.url)
        async with talking(recorded_server(live, file), era) as client:
            with anyio.CancelScope() as scope:

                async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                    del progress, total, message
                    scope.cancel()

                await client.call_tool("sleep", {"seconds": 600}, progress_callback=on_progress)
            await client.call_tool("stats", {"until_cancelled": 1})
    assert [one.target for one in load_cassette(file).exchanges if one.method == "tools/call"] == ["stats"]


@pytest.mark.promise("CASSETTE-KILL")
def test_a_killed_recorder_leaves_every_answer_that_was_given(tmp_path: Path) -> None:
    file = tmp_path / "killed.jsonl"
    server = recorded_server(stdio_server(Script()), file)
    lines: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}},
        {"id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "kept"}}},
        {"id": 3, "method": "tools/call", "params": {"name": "sleep", "arguments": {"seconds": 600}}},
    ]
    process = subprocess.Popen(
        [server.command or "", *server.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in lines:
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
                process.stdin.flush()
                if line["id"] != 3:
                    assert json.loads(process.stdout.readline())["id"] == line["id"]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert [one.method for one in load_cassette(file).exchanges] == ["initialize", "tools/call"]
