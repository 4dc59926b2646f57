"""What the search box finds as one types: pages, servers, capabilities and agents by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from outfitter.dashboard.looks import path_part

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_EACH = 8
_PAGES = ("Home", "Servers", "Capabilities", "Agents", "Calls", "Runs", "Playground", "Access")
_KINDS = (("servers", "/mcp-servers"), ("capabilities", "/capabilities"), ("agents", "/agents"))


async def find(page: Page) -> Response:
    """The first few of each kind, as JSON."""
    asked = page.asked("q").strip()
    found = [
        {"kind": "page", "name": name, "at": "/ui/" if name == "Home" else f"/ui/{name.lower()}"}
        for name in _PAGES
        if asked.lower() in name.lower()
    ]
    for kind, path in _KINDS:
        items = (await page.api.get(path, q=asked or None, limit=_EACH))["items"]
        found += [{"kind": kind, "name": one["id"], "at": f"/ui/{kind}/{path_part(one['id'])}"} for one in items]
    return JSONResponse(found)
