"""What the search box finds: pages, servers, capabilities, agents and tools by name, as JSON while one types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from outfitter.dashboard.looks import path_part

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_EACH, _EACH_ON_PAGE = 8, 50
_PAGES = (
    "Home", "Servers", "Import", "Capabilities", "Agents", "Calls", "Runs", "Approvals", "Pins", "Budgets",
    "Playground", "Access",
)  # fmt: skip
_KINDS = (("servers", "/mcp-servers"), ("capabilities", "/capabilities"), ("agents", "/agents"))


async def find(page: Page) -> Response:
    """The first few of each kind: as JSON for the box, as a page for whoever has no script."""
    asked = page.asked("q").strip()
    is_box = "application/json" in page.request.headers.get("accept", "")
    found = await _find(page, asked, _EACH if is_box else _EACH_ON_PAGE)
    if is_box:
        return JSONResponse(found)
    return page.render("search.html", command="outfitter servers list", asked=asked, found=found)


async def _find(page: Page, asked: str, limit: int) -> list[dict[str, str]]:
    found = [
        {"kind": "page", "name": name, "at": "/ui/" if name == "Home" else f"/ui/{name.lower()}"}
        for name in _PAGES
        if asked.lower() in name.lower()
    ]
    for kind, path in _KINDS:
        items = (await page.api.get(path, q=asked or None, limit=limit))["items"]
        found += [{"kind": kind, "name": one["id"], "at": f"/ui/{kind}/{path_part(one['id'])}"} for one in items]
    if not asked:
        return found
    tools = (await page.api.get("/known-tools", q=asked, limit=limit))["items"]
    return found + [
        {"kind": "tool", "name": one["tool"], "of": one["server"], "at": f"/ui/servers/{path_part(one['server'])}"}
        for one in tools
    ]
