"""A registry of five hundred servers with five thousand tools, and how many bytes its pages are on the wire."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import aiohttp

from tests.app.kit import Place

SERVERS, TOOLS = 500, 10
PAGES = (
    "/ui/", "/ui/servers", "/ui/servers/server-0250", "/ui/servers/server-0250/edit", "/ui/capabilities", "/ui/agents",
    "/ui/agents/wide", "/ui/agents/wide/edit", "/ui/agents/wide/try", "/ui/new/agent", "/ui/calls",
    "/ui/runs?agent=wide", "/ui/playground", "/ui/access", "/ui/search?q=tool", "/ui/import",
)  # fmt: skip


def big(folder: Path) -> Place:
    """A place with many servers and tools, one of which is called otherwise."""
    place = Place(folder)
    for number in range(SERVERS):
        tools = [f"tool_{number * TOOLS + step:04}_of_{number}" for step in range(TOOLS)]
        if number == SERVERS // 2:
            tools[3] = "needle_in_the_hay"
        name = f"server-{number:04}"
        place.write(
            f"mcp-servers/{name}.json",
            {
                "id": name, "name": f"Server {number}", "description": f"What team {number % 20} uses every day",
                "url": f"http://localhost:9/mcp/{number}", "known_tools": tools,
                "header_schema": {"X-Team": {"type": "string", "description": "Whose data is shown"}},
            },
        )  # fmt: skip
    uses = {f"s{number}": {"ref": f"server-{number:04}"} for number in range(0, SERVERS, 10)}
    place.write("agents/wide.json", {"name": "wide", "mcpServers": uses})
    return place


async def weight(http: aiohttp.ClientSession, path: str) -> int:
    """How many bytes go over the wire for a page with everything that it loads."""
    headers = {"accept-encoding": "gzip"}
    async with http.get(path, headers=headers) as answer:
        assert (answer.status, answer.headers["content-encoding"]) == (200, "gzip"), path
        content = await answer.read()
    size, text = len(content), gzip.decompress(content).decode()
    for found in sorted(set(re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', text))):
        async with http.get(found, headers=headers) as answer:
            assert "immutable" in answer.headers["cache-control"]
            size += len(await answer.read())
    return size
