"""The commands around recordings, as they are typed: what they say, and how they end."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from outfitter.testing import Script, load_cassette, stdio_server
from tests.cli.terminal import Terminal

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "typed", "version": "1"}}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
SCRIPTED = (sys.executable, *stdio_server(Script()).args)


def lines(*calls: tuple[str, dict[str, Any]]) -> str:
    """What a client says that makes these calls."""
    opening = [{"id": 0, "method": "initialize", "params": HELLO}, {"method": "notifications/initialized"}]
    asked = [
        {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls, start=1)
    ]
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in [*opening, *asked])


@pytest.mark.promise("RECORD-REPLAY")
def test_a_recording_is_made_listed_and_played_and_a_missed_call_is_told_at_the_end(terminal: Terminal) -> None:
    said = lines(("echo", {"text": "hello"}))
    recorded = terminal.run("record", "--out", "echo.jsonl", "--", *SCRIPTED, stdin=said)
    assert (recorded.code, recorded.err.splitlines()[-1].split(" from ")[0]) == (0, "Recorded 2 lines")
    again = terminal.run("record", "--out", "echo.jsonl", "--", *SCRIPTED, stdin=said)
    assert again.code == 5
    assert "--overwrite" in again.err

    listed = terminal.run("replay", "echo.jsonl", "--list", "--json").json()
    assert [entry["request"].partition(" {")[0] for entry in listed["entries"]] == ["initialize", "tools/call echo"]
    assert 'tools/call echo {"text": "hello"}' in terminal.run("replay", "echo.jsonl", "--list").out

    played = terminal.run("replay", "echo.jsonl", stdin=lines(*[("echo", {"text": "hello"})] * 2))
    assert played.code == 0
    assert [json.loads(line)["id"] for line in played.out.splitlines()] == [0, 1, 2]
    assert "asked more often than recorded, the last answer again" in played.err
    missed = terminal.run("replay", "echo.jsonl", stdin=lines(("echo", {"text": "else"})))
    assert missed.code == 1
    assert "1 missed" in missed.err
    assert "not recorded" in json.loads(missed.out.splitlines()[-1])["error"]["message"]


@pytest.mark.promise("RECORD-REPLAY")
def test_an_agents_endpoint_is_recorded(terminal: Terminal) -> None:
    command, *args = SCRIPTED
    terminal.write("outfitter/mcp-servers/scripted.json", {"command": command, "args": args})
    terminal.write("outfitter/agents/ada.json", {"mcpServers": {"s": {"ref": "scripted"}}})
    params: dict[str, Any] = {"name": "s_echo", "arguments": {"text": "hello"}, "_meta": META}
    said = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    recorded = terminal.run("record", "--out", "ada-{time}.jsonl", "--agent", "ada", stdin=f"{said}\n")
    assert recorded.code == 0, recorded.err
    (file,) = terminal.folder.glob("ada-*.jsonl")
    (call,) = load_cassette(file).exchanges
    assert (call.target, (call.result or {})["structuredContent"]) == ("s_echo", {"text": "hello"})
    assert (load_cassette(file).header.server, load_cassette(file).header.era) == ("agent ada", "modern")


def test_a_proxy_says_what_it_did(terminal: Terminal) -> None:
    faults = "error=100%,seed=1"
    done = terminal.run("proxy", "--faults", faults, "--report", "r.json", "--", *SCRIPTED, stdin=lines(("echo", {})))
    assert done.code == 0, done.err
    answers = {said["id"]: said for said in map(json.loads, done.out.splitlines())}
    assert answers[1]["error"]["data"] == {"injected": True}
    assert "2 requests, 0 delayed; error 1 (error=100%,seed=1)" in done.err
    assert json.loads((terminal.folder / "r.json").read_text(encoding="utf-8"))["counts"] == {"error": 1}


def test_a_server_that_cannot_be_started_or_dies_is_told(terminal: Terminal) -> None:
    missing = terminal.run("record", "--out", "x.jsonl", "--", "no-such-program-anywhere", stdin=lines())
    assert (missing.code, "is not on PATH" in missing.err) == (7, True)
    dead = terminal.run("record", "--out", "x.jsonl", "--", sys.executable, "-c", "print('oops')", stdin=lines())
    assert (dead.code, "not JSON" in dead.err) == (7, True)
    assert not (terminal.folder / "x.jsonl").exists()


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("record", "--out", "x"), 3, "say which server is meant"),
        (("record", "--out", "x", "--url", "http://127.0.0.1:1/mcp", "--", "y"), 3, "and only one"),
        (("record", "--out", "x", "--header", "A=b", "--", "y"), 3, "headers are for"),
        (("record", "--out", "x", "--url", "http://127.0.0.1:1/mcp", "--header", "A"), 2, "NAME=VALUE"),
        (("proxy", "--faults", "dropp=1%", "--", "y"), 3, "did you mean 'drop'"),
        (("replay", "none.jsonl"), 4, "no such recording"),
        (("replay", "none.jsonl", "--add"), 2, "--fallback"),
    ],
)
def test_what_cannot_be_meant_is_refused(terminal: Terminal, args: tuple[str, ...], code: int, told: str) -> None:
    printed = terminal.run(*args)
    assert (printed.code, told in printed.err) == (code, True), printed.err
