"""What the search box finds: pages, servers, capabilities, agents and tools by name, as JSON while one types."""

from __future__ import annotations

from collections.abc import Mapping
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
_PLACES = {"mcp-servers": "servers", "capabilities": "capabilities", "agents": "agents", "tools": "servers"}
_WORDS = {**_PLACES, "tools": "tool"}


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
    items = (await page.api.get("/find", q=asked, limit=limit))["items"]
    return found + [_shown(one) for one in items if asked or one["kind"] != "tools"]


def _shown(one: Mapping[str, str]) -> dict[str, str]:
    """One of those with the page that it leads to: a tool leads to its server."""
    at = f"/ui/{_PLACES[one['kind']]}/{path_part(one['server'] or one['name'])}"
    return {"kind": _WORDS[one["kind"]], "name": one["name"], "of": one["server"], "at": at}
