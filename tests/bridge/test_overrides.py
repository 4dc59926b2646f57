"""Other words and arguments for a tool of the library, as for one of the gateway."""

from __future__ import annotations

from typing import Any, cast

import pytest

from outfitter.bridge import McpIntegrationSection
from outfitter.catalog import JsonValue, ToolOverride
from outfitter.session import Session
from outfitter.testing import ScriptedTool
from tests.bridge.kit import call, scripted, tool_of


@pytest.mark.promise("OVERRIDE-LIBRARY")
def test_an_override_changes_a_tool_of_the_library_as_it_changes_one_of_the_gateway() -> None:
    text: dict[str, JsonValue] = {"type": "string"}
    schema: dict[str, JsonValue] = {
        "type": "object", "properties": {"query": text, "tenant": text}, "required": ["query", "tenant"],
    }  # fmt: skip
    server = scripted("one", ScriptedTool("find", "Finds", schema, "echo"))
    override = ToolOverride("Look", "Looks", {"tenant": "blue"}, ("tenant",))
    section = McpIntegrationSection(servers=[server], session=Session(), overrides={"one": {"find": override}})
    with section:
        tool = tool_of(section, "find")
        assert (tool.title, tool.description) == ("Look", "Looks")
        assert list(cast("Any", tool.arguments).schema["properties"]) == ["query"]
        found = call(section, "find", query="q")
        assert cast("Any", found.raw)["structuredContent"] == {"query": "q", "tenant": "blue"}
        refused = call(section, "find", query="q", tenant="red")
        assert (refused.success, "tenant" in refused.message) == (False, True)
