"""Many tools at once: cheap until they are used, and only what changed is made anew."""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import Any

import pytest

from outfitter.bridge import McpConnection, McpConnectionPool, McpIntegrationSection, ServerTools, bridge_tools
from outfitter.prompt import Prompt, PromptTemplate, SectionVisibility
from outfitter.session import Session
from outfitter.upstream import Message
from tests.bridge.kit import scripted
from tests.upstream.real import children_running

MANY = 500


def definition(number: int) -> Message:
    """A tool as servers have them: ten arguments, a few words about each, and a typed result."""
    properties = {f"field_{n}": {"type": "string", "description": "what it is about"} for n in range(10)}
    output = {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "integer"}}}}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": ["field_0"]}
    return {"name": f"tool_{number}", "description": "x" * 300, "inputSchema": schema, "outputSchema": output}


@pytest.mark.promise("BRIDGE-MANY")
def test_five_hundred_tools_are_light_and_only_changes_are_made_anew() -> None:
    server = scripted()
    with McpConnectionPool() as pool:
        connection = pool.connect([server])["one"]
        assert isinstance(connection, McpConnection)
        listed = [definition(number) for number in range(MANY)]
        bridge_tools([ServerTools(server, connection, listed[:1])])
        gc.collect()
        tracemalloc.start()
        found = bridge_tools([ServerTools(server, connection, listed)])
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(found.tools) == MANY
        assert size / MANY < 25 * 1024
        first = _seconds(lambda: bridge_tools([ServerTools(server, connection, listed)]))
        changed = [*listed[:-1], {**listed[-1], "description": "another"}]
        again = bridge_tools([ServerTools(server, connection, changed)], None, found)
        assert [new is old for new, old in zip(again.tools, found.tools, strict=True)] == [True] * (MANY - 1) + [False]
        assert _seconds(lambda: bridge_tools([ServerTools(server, connection, changed)], None, found)) < first


def _seconds(job: Any) -> float:  # noqa: ANN401 - any function
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


@pytest.mark.promise("BRIDGE-MANY")
def test_lists_that_are_not_what_they_should_be_are_read_as_far_as_possible() -> None:
    server = scripted()
    with McpConnectionPool() as pool:
        connection = pool.connect([server])["one"]
        assert isinstance(connection, McpConnection)
        listed: list[Message] = [
            {"name": "bare"},
            {"name": "bare", "description": "a second of that name"},
            {"name": ""},
            {"description": "no name"},
            {"name": "odd", "inputSchema": "text"},
            {"name": "odder", "inputSchema": {"type": "object"}, "outputSchema": []},
            {"name": "null", "inputSchema": {}, "description": None, "annotations": []},
        ]
        found = bridge_tools([ServerTools(server, connection, listed)])
        assert [tool.tool for tool in found.tools] == ["bare", "null"]
        assert [error.tool_name for error in found.rejected] == ["odd", "odder"]


@pytest.mark.promise("B17")
def test_a_section_that_is_only_told_of_starts_nothing() -> None:
    section = McpIntegrationSection(
        servers=[scripted()], session=Session(), summary="Servers for later.", visibility=SectionVisibility.SUMMARY
    )
    rendered = Prompt(PromptTemplate(ns="demo", key="mcp", sections=[section])).render()
    assert "Servers for later." in rendered.text
    assert not [tool for tool in rendered.tools if tool.source == "mcp"]
    assert children_running() == []
