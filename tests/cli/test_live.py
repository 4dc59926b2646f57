"""Commands that really connect, against scripted servers in processes of their own."""

from __future__ import annotations

import json

import pytest

from outfitter.testing import Crash, DeadOnArrival, Script, When, stdio_server
from tests.cli.terminal import Terminal


def _entry(script: Script) -> dict[str, object]:
    server = stdio_server(script)
    return {"command": server.command, "args": list(server.args), "env": {"TOKEN": "${MY_TOKEN:-none}"}}


@pytest.fixture
def live(terminal: Terminal) -> Terminal:
    """Two agents on one scripted server; the careful one may only echo short paths."""
    terminal.write("outfitter/mcp-servers/one.json", _entry(Script()))
    terminal.write("outfitter/mcp-servers/dead.json", _entry(Script(faults=(DeadOnArrival(stderr="no licence"),))))
    terminal.write("outfitter/agents/free.json", {"mcpServers": {"tools": {"ref": "one"}}})
    rule = {"tools": ["echo"], "effect": "allow", "arguments": {"/text": ["tests/**"]}, "reason": "tests only"}
    careful = {"mcpServers": {"tools": {"ref": "one", "tools": ["echo", "add"]}}, "rules": [rule]}
    terminal.write("outfitter/agents/careful.json", careful)
    terminal.write("outfitter/agents/mixed.json", {"mcpServers": {"tools": {"ref": "one"}, "dead": {"ref": "dead"}}})
    return terminal


@pytest.mark.promise("CLI-LIVE")
def test_connect_tells_state_era_and_tools(live: Terminal) -> None:
    printed = live.run("connect", "free", "--json")
    assert printed.code == 0, printed.err
    (row,) = printed.json()
    assert (row["server"], row["state"], row["era"]) == ("tools", "ready", "modern")
    assert row["tools"] > 5
    assert "ready" in live.run("connect", "one").out


def test_connect_names_the_dead_server_and_still_serves_the_other(live: Terminal) -> None:
    printed = live.run("connect", "mixed", "--json")
    rows = {row["server"]: row for row in printed.json()}
    assert printed.code == 1
    assert rows["tools"]["state"] == "ready"
    assert rows["dead"]["state"] == "down"
    assert "no licence" in rows["dead"]["error"]


@pytest.mark.promise("CLI-LIVE")
def test_tools_lists_what_the_agent_gets_under_the_names_a_model_sees(live: Terminal) -> None:
    shown = {row["shown"] for row in live.run("tools", "careful", "--json").json()}
    assert shown == {"tools_echo", "tools_add"}
    assert "tools_echo" in live.run("tools", "careful").out


@pytest.mark.promise("CLI-LIVE")
@pytest.mark.parametrize("name", ["tools_add", "tools/add", "add"])
def test_call_takes_pairs_or_json_and_prints_the_text(live: Terminal, name: str) -> None:
    assert "3" in live.run("call", "free", name, "a=1", "b=2").out
    printed = live.run("call", "free", name, "--json", '{"a": 1, "b": 2}', "--raw")
    assert "3" in json.dumps(printed.json())


@pytest.mark.promise("CLI-LIVE")
def test_a_call_is_held_to_the_filters_and_rules_of_the_agent(live: Terminal) -> None:
    assert live.run("call", "careful", "tools_echo", "text=tests/a").code == 0
    refused = live.run("call", "careful", "tools_echo", "text=src/a")
    assert refused.code == 6
    assert "tests only" in refused.err
    hidden = live.run("call", "careful", "tools_sleep", "seconds=0")
    assert hidden.code == 4


def test_a_failing_tool_and_a_lost_server_have_their_exit_codes(live: Terminal) -> None:
    assert live.run("call", "free", "fail", "message=no").code == 1
    live.write("outfitter/mcp-servers/one.json", _entry(Script(faults=(Crash(When(name="add"), stderr="dead now"),))))
    lost = live.run("call", "free", "add", "a=1", "b=2")
    assert lost.code == 7
    assert "dead now" in lost.err


@pytest.mark.parametrize("bad", [("nonsense",), ("--json", "[1]"), ("--json", "{")])
def test_bad_arguments_are_told(live: Terminal, bad: tuple[str, ...]) -> None:
    assert live.run("call", "free", "echo", *bad).code == 3


def test_a_missing_variable_stops_its_own_server_only(live: Terminal) -> None:
    entry = {**_entry(Script()), "env": {"TOKEN": "${NOT_SET}"}}
    live.write("outfitter/mcp-servers/needy.json", entry)
    live.write("outfitter/agents/both.json", {"mcpServers": {"tools": {"ref": "one"}, "needy": {"ref": "needy"}}})
    rows = {row["server"]: row for row in live.run("connect", "both", "--json").json()}
    assert rows["tools"]["state"] == "ready"
    assert "unresolved: NOT_SET" in rows["needy"]["error"]
    assert rows["needy"]["state"] == "configured"


def test_secrets_reach_the_server_and_no_output(live: Terminal) -> None:
    printed = live.run("call", "free", "headers", "--raw", MY_TOKEN="CNRY-7")
    assert "TOKEN" in printed.out
    assert "CNRY-7" not in printed.out + printed.err


def test_an_unknown_name_suggests_agents_and_servers(live: Terminal) -> None:
    printed = live.run("connect", "fre")
    assert printed.code == 4
    assert "did you mean 'free'?" in printed.err


@pytest.mark.promise("CLI-LIVE")
def test_doctor_live_connects_what_is_used_and_nothing_else(live: Terminal) -> None:
    findings = {f["subject"]: f for f in live.run("doctor", "--live", "--json").json() if f["check"] == "live"}
    assert findings["one"]["verdict"] == "ok"
    assert "modern 2026-07-28" in findings["one"]["message"]
    assert findings["dead"]["verdict"] == "fail"


def test_approve_forgets_what_was_recorded(live: Terminal) -> None:
    assert live.run("connect", "free").code == 0
    assert live.run("approve", "one", "--json").json() == {"server": "one", "forgotten": 1}
    assert live.run("approve", "nobody").code == 4
