"""The tools of a section's servers, searched instead of listed: an adapter offers three for all of them."""

from __future__ import annotations

import json

import pytest

from outfitter.adapters import Fitting, Limits, Outfit, ToolUse
from outfitter.tools import Tool
from tests.adapters.kit import prompt_of, scripted

pytestmark = pytest.mark.anyio


@pytest.mark.promise("SEARCH-LIBRARY")
async def test_an_adapter_offers_three_tools_for_those_of_a_searched_section() -> None:
    def ping() -> str:
        """Answer."""
        return "pong"

    prompt = prompt_of(Tool.wrap(ping), mcps=[scripted("demo", "add", "echo")], tool_search=True)
    async with Outfit(prompt, Fitting("test"), session=None, limits=Limits()) as outfit:
        assert [tool.name for tool in outfit.tools()] == ["search_tools", "describe_tool", "call_tool"]
        found = await outfit.call(ToolUse("1", "search_tools", {"query": "add numbers"}))
        told = json.loads(found.result.message)
        assert (told["tools"][0]["name"], told["searched"]) == ("demo_add", 3)
        added = await outfit.call(ToolUse("2", "call_tool", {"name": "demo_add", "arguments": {"a": 1, "b": 2}}))
        assert "3" in added.result.message
        assert (await outfit.call(ToolUse("3", "call_tool", {"name": "ping"}))).result.value == "pong"
