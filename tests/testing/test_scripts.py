"""Scripts travel as JSON, start as processes, and the door to them is light."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import get_args

import anyio
import pytest

from outfitter import MCPServer
from outfitter.catalog import SseTransport, StdioTransport, StreamableHttpTransport
from outfitter.errors import Invalid
from outfitter.testing import (
    SLOPPY_TOOLS,
    Crash,
    Fault,
    Garbage,
    Hang,
    Script,
    ScriptedPrompt,
    ScriptedResource,
    ScriptedTool,
    Status,
    When,
    http_server_definition,
    stdio_server,
)
from tests.testing.clients import call, piped, raw_post, request

FAULTS: tuple[type[Fault], ...] = get_args(Fault)


@pytest.mark.promise("TESTING-SCRIPTS")
def test_a_script_reads_back_as_it_was_written() -> None:
    script = Script(
        name="mine",
        eras=("modern",),
        tools=(ScriptedTool("a", "b", {"type": "object"}, "answer", {"content": []}, {"x-y": 1}), *SLOPPY_TOOLS),
        resources=(ScriptedResource("test://a", "ä"),),
        prompts=(ScriptedPrompt("p", "{x}", ("x",), ("1", "2")),),
        page_size=3,
        faults=(
            *(kind() for kind in FAULTS),
            Garbage(When("tools/list", after=2, times=1), "\udcff"),
            Status(When("GET"), 401, "", {"WWW-Authenticate": "Bearer"}),
        ),
    )
    assert Script.from_json(script.to_json()) == script
    assert Script.from_json("{}") == Script()


@pytest.mark.promise("TESTING-SCRIPTS")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "JSON object"),
        ('{"nmae": "x"}', "no Script"),
        ('{"tools": [{"title": "x"}]}', "no ScriptedTool"),
        ('{"faults": [{"fault": "Meteor"}]}', "no such fault: 'Meteor'"),
        ('{"faults": [{"fault": "Hang", "when": {"often": 1}}]}', "no When"),
        ('{"faults": [{"fault": "Hang", "seconds": 1}]}', "no Hang"),
    ],
)
def test_what_is_no_script_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        Script.from_json(text)


@pytest.mark.promise("TESTING-FAULTS")
@pytest.mark.parametrize(
    ("when", "struck"),
    [
        (When(), [1, 2, 3, 4]),
        (When(after=2), [3, 4]),
        (When(times=1), [1]),
        (When(after=1, times=2), [2, 3]),
    ],
)
def test_a_fault_strikes_when_it_should(when: When, struck: list[int]) -> None:
    assert [count for count in range(1, 5) if when.strikes(count)] == struck
    assert when.fits("tools/call", "echo")
    assert not when.fits("tools/list", None)
    assert When("*").fits("ping", None)
    assert not When(name="add").fits("tools/call", "echo")


@pytest.mark.promise("TESTING-SCRIPTS")
def test_definitions_point_at_the_servers() -> None:
    server = stdio_server(Script(name="mine"))
    assert isinstance(server, MCPServer)
    assert isinstance(server.transport, StdioTransport)
    assert (server.name, server.command) == ("mine", sys.executable)
    assert stdio_server(name="other").name == "other"
    assert isinstance(http_server_definition("a", "http://127.0.0.1:1/mcp").transport, StreamableHttpTransport)
    assert isinstance(http_server_definition("a", "http://127.0.0.1:1/sse").transport, SseTransport)


@pytest.mark.promise("TESTING-SCRIPTS")
def test_neither_the_door_nor_the_stdio_server_loads_anything_foreign() -> None:
    tell = "print(*{name.partition('.')[0] for name in set(sys.modules) - before});"
    program = (
        f"import runpy, sys; before = set(sys.modules); import outfitter.testing; {tell}"
        f"runpy.run_module('outfitter.testing.stdio_server', run_name='loaded'); {tell}"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    door, server = (set(line.split()) for line in done.stdout.splitlines())
    assert server - sys.stdlib_module_names == {"outfitter"}
    assert "asyncio" in server - door


@pytest.mark.anyio
@pytest.mark.promise("TESTING-SERVERS")
async def test_sloppy_definitions_go_out_as_they_are() -> None:
    async with piped(Script(tools=SLOPPY_TOOLS)) as pipe:
        tools = (await pipe.ask(request("tools/list", modern=True)))["result"]["tools"]
    by_name = {tool["name"]: tool for tool in tools}
    assert by_name["bare"]["inputSchema"] == {}
    assert by_name["vendor"]["x-vendor"] == {"tier": 1}


@pytest.mark.anyio
@pytest.mark.promise("TESTING-SERVERS")
async def test_a_request_of_the_wrong_era_is_refused() -> None:
    async with piped(Script(eras=("modern",))) as pipe:
        assert (await pipe.ask(call("echo")))["error"]["code"] == -32602
        assert (await pipe.ask(request("initialize", protocolVersion="2025-11-25")))["error"]["code"] == -32022
    async with piped(Script(eras=("legacy",), legacy_versions=("2024-11-05",))) as pipe:
        assert (await pipe.ask(request("server/discover", modern=True)))["error"]["code"] == -32601
        assert (await pipe.ask(call("echo")))["error"]["code"] == -32600
        shaken = await pipe.ask(request("initialize", protocolVersion="2025-11-25", capabilities={}))
        assert shaken["result"]["protocolVersion"] == "2024-11-05"
        assert "result" in await pipe.ask(call("echo"))


@pytest.mark.anyio
@pytest.mark.promise("TESTING-SERVERS")
async def test_a_request_state_from_elsewhere_is_refused() -> None:
    async with piped(Script()) as pipe:
        message = call("ask", modern=True)
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {}}
        asked = (await pipe.ask(message))["result"]
        assert asked["resultType"] == "input_required"
        message["params"] |= {"requestState": "forged", "inputResponses": {}}
        assert (await pipe.ask(message))["error"]["code"] == -32602
        message["params"]["requestState"] = asked["requestState"]
        assert (await pipe.ask(message))["result"]["resultType"] == "input_required"


@pytest.mark.anyio
@pytest.mark.promise("TESTING-FAULTS")
async def test_an_http_server_in_a_process_of_its_own_serves_and_crashes(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(Script(faults=(Crash(When(name="fail")),)).to_json(), encoding="utf-8")
    command = [sys.executable, "-m", "outfitter.testing.http_server", "--script", str(file)]
    async with await anyio.open_process(command) as process:
        assert process.stdout is not None
        caller = f"http://127.0.0.1:{(await process.stdout.receive()).decode().strip()}/mcp"
        received: list[bytes] = []
        await raw_post(caller, call("add", modern=True, a=1, b=2), received)
        assert b'"sum":3' in b"".join(received)
        received.clear()
        with suppress(ConnectionResetError):
            await raw_post(caller, call("fail", modern=True), received)
        assert received == []
        assert await process.wait() == -9


@pytest.mark.promise("TESTING-SCRIPTS")
def test_an_http_server_writes_its_port_and_ends_on_demand(tmp_path: Path) -> None:
    file = tmp_path / "port"
    command = [sys.executable, "-m", "outfitter.testing.http_server", "--port-file", str(file)]
    with subprocess.Popen(command) as process:
        while not file.exists():
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.02)
        assert int(file.read_text(encoding="utf-8")) > 0
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.promise("TESTING-FAULTS")
def test_every_fault_has_a_default() -> None:
    for kind in FAULTS:
        assert all(getattr(kind(), item.name) is not None or item.name == "code" for item in fields(kind))
    assert Hang() == Hang(When("tools/call"))
