"""Pins of a program of one's own: changed tools are not offered, changed programs not started."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outfitter.bridge import McpConnectionPool, McpIntegrationSection, PinFile, ToolHeldBack
from outfitter.catalog import MCPServer, PinMode, ToolFilter, ToolKey
from outfitter.errors import McpConnectionError, NotFound, StorageUnavailable
from outfitter.policy import Why
from outfitter.session import Session
from outfitter.testing import Script, ScriptedTool, http_server_definition, serve_http
from tests.bridge.kit import Waiting, scripted

PARTS: dict[str, Any] = {"title": "Echo", "annotations": {"readOnlyHint": True}, "outputSchema": {"type": "object"}}


def tool(name: str, description: str = "Says it again.", **extra: Any) -> ScriptedTool:  # noqa: ANN401 - JSON
    return ScriptedTool(name, f"{description} ({name})", kind="echo", extra={**PARTS, **extra})


FIRST = (tool("a"), tool("b"), tool("c"), tool("d"), tool("e"), tool("f"))
THEN = (
    tool("a", "Says it again, to me."),
    replace(tool("b"), schema={"type": "object", "properties": {"key": {"type": "string"}}}),
    tool("c", title="Echo and send"),
    tool("d", annotations={"readOnlyHint": False}),
    tool("e", outputSchema={"type": "object", "title": "other"}),
    replace(tool("f"), name="g"),
    tool("h", "Says it\u200b again."),
)


def offered(server: MCPServer, pins: PinFile, session: Session | None = None) -> tuple[set[str], dict[str, Why]]:
    """The tools that a section offers, and why others are held back."""
    with McpIntegrationSection(servers=[server], session=session or Session(), pins=pins) as section:
        names = {one.tool for one in section.tools()}
        return names, {key.tool: held.why for key, held in section.held.items()}


@pytest.mark.promise("G17")
@pytest.mark.promise("G18")
@pytest.mark.promise("G21")
def test_changed_tools_are_not_offered_before_somebody_approves_them(tmp_path: Path) -> None:
    pins = PinFile(tmp_path / "outfitter.pins.json")
    assert offered(scripted("one", *FIRST), pins) == (set("abcdef"), {})
    session = Session()
    events = Waiting(session, ToolHeldBack)
    names, held = offered(scripted("one", *THEN), pins, session)
    assert names == set()
    assert held == {**dict.fromkeys("abcde", Why.CHANGED), "g": Why.RENAMED, "h": Why.HIDDEN_TEXT}
    told = {event.tool: event.reason for event in events.wait(lambda found: len(found) == 7)}
    assert told["a"] == "its definition is not the one that was approved"
    assert [pin.name for pin in pins.approve("one", ["g"])] == ["g"]
    assert {pin.name for pin in pins.reject("one", ["h"])} == {"h"}
    assert len(pins.approve("one")) == 5
    assert offered(scripted("one", *THEN), pins) == (set("abcdeg"), {"h": Why.HIDDEN_TEXT})
    assert offered(scripted("one", *FIRST), pins)[0] == set("abcdef"), "what was approved stays approved"
    with pytest.raises(NotFound, match="no tool 'z'"):
        pins.approve("one", ["z"])


@pytest.mark.anyio
async def test_a_tool_that_changes_while_it_is_used_is_taken_back(tmp_path: Path) -> None:
    session, pins = Session(), PinFile(tmp_path / "pins.json")
    events = Waiting(session, ToolHeldBack)
    async with serve_http(Script("one", tools=FIRST)) as served, McpConnectionPool(pins=pins) as pool:
        server = http_server_definition("one", served.url)
        async with McpIntegrationSection(servers=[server], session=session, pool=pool) as section:
            assert len(section.tools()) == len(FIRST)
            await served.play(Script("one", tools=(THEN[0], *FIRST[1:])))
            await section.arefresh()
            assert set(section.held) == {ToolKey("one", "a")}
            assert {one.tool for one in section.tools()} == set("bcdef")
            assert events.wait()[0].why == "changed"


def test_modes_and_exclude_rules_hold_as_at_the_gateway(tmp_path: Path) -> None:
    pins = PinFile(tmp_path / "pins.json")
    strict = replace(scripted("strict", *FIRST[:2]), pins=PinMode.APPROVE)
    assert offered(strict, pins) == (set(), {"a": Why.NEW, "b": Why.NEW})
    wary = replace(scripted("one", *FIRST[:2]), tools=ToolFilter(exclude=("b",)))
    assert offered(wary, pins) == ({"a"}, {})
    more = replace(scripted("one", *FIRST[:3]), tools=ToolFilter(exclude=("b",)))
    assert offered(more, pins) == ({"a"}, {"c": Why.NEW})
    assert offered(replace(scripted("one", *THEN), pins=PinMode.OFF), pins)[0] == set("abcdegh")


def test_a_file_that_somebody_changed_by_hand_lets_nothing_in(tmp_path: Path) -> None:
    pins = PinFile(tmp_path / "pins.json")
    offered(scripted("one", *FIRST[:1]), pins)
    told = json.loads(pins.path.read_text())
    told["pins"][0]["definition"]["description"] = "Anything."
    pins.path.write_text(json.dumps(told))
    with pytest.raises(StorageUnavailable, match="not the one that was pinned"):
        pins.pins()
    with pytest.raises(McpConnectionError, match="the pins cannot be read"):
        offered(scripted("one", *FIRST[:1]), pins)


@pytest.mark.promise("P07")
def test_a_program_that_was_replaced_is_not_started(tmp_path: Path) -> None:
    pins, program, canary = PinFile(tmp_path / "pins.json"), tmp_path / "server", tmp_path / "canary"
    start = f"exec {sys.executable} -m outfitter.testing.stdio_server"
    program.write_text(f"#!/bin/sh\n{start}\n")
    program.chmod(0o755)
    server = MCPServer.stdio("one", str(program))
    assert offered(server, pins)[0]
    program.write_text(f"#!/bin/sh\ntouch {canary}\n{start}\n")
    with pytest.raises(McpConnectionError, match="was replaced since it was approved"):
        offered(server, pins)
    assert not canary.exists()
    pins.programs.approve("one")
    assert offered(server, pins)[0]
    assert canary.exists()
