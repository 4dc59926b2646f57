"""What an agent's tools cost, over the API: as its servers were last seen, as its plan shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.resolution import SeenServer
from tests.coordinator.api.kit import service

pytestmark = pytest.mark.anyio
SEEN = SeenServer(
    (
        {"name": "small", "description": "Short.", "inputSchema": {"type": "object"}},
        {"name": "large", "description": "A longer text. " * 20, "inputSchema": {"type": "object"}},
        {"name": "hidden", "description": "A longer text. " * 90, "inputSchema": {"type": "object"}},
    )
)


@pytest.mark.promise("TOKEN-METER")
async def test_the_tokens_of_an_agents_tools_are_those_of_what_it_is_shown(tmp_path: Path) -> None:
    def recall(key: str) -> SeenServer | None:
        return SEEN if key.startswith("x.") else None

    async with service(tmp_path, recall=recall) as served:
        await served.must("/mcp-servers", {"id": "x", "url": "https://tools.example/mcp"})
        await served.must("/mcp-servers", {"id": "y", "url": "https://other.example/mcp"})
        uses = {
            "x": {"ref": "x", "tools": {"exclude": ["hidden"]}, "overrides": {"large": {"description": "Short."}}},
            "y": {"ref": "y"},
        }
        await served.must(
            "/agents", {"name": "a", "mcpServers": uses, "tool_search": {"mode": "auto", "threshold": 10}}
        )
        found = (await (await served.as_role("viewer")).get("/agents/a/tool-tokens")).json
        assert [tool["shown"] for tool in found["tools"]] == ["x_large", "x_small"]
        assert found["tokens"] == sum(tool["tokens"] for tool in found["tools"]) < 100
        assert (found["unseen"], found["searched"]) == (["y"], True)
        assert found["tokens_read"] > 100, "the three tools cost more than these two"
        assert (await served.get("/agents/nobody/tool-tokens")).status == 404
