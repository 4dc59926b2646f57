"""Servers tried: whether one answers now and with which tools, and those tools kept as the known ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outfitter.dashboard.looks import path_part
from outfitter.dashboard.page import number_in
from outfitter.dashboard.pages.entries import show_server
from outfitter.errors import Invalid

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page


async def test(page: Page) -> Response:
    """Connect it, and show how it answered."""
    await page.form()
    return await show_server(page, await page.api.send("POST", f"{_place(page)}/probe"))


async def keep_tools(page: Page) -> Response:
    """Write the tools that it has told into its entry, so that forms can offer them."""
    fields = await page.fields()
    tools = [value for name, value in fields if name == "tool"]
    if not tools:
        raise Invalid("no tool was named")
    document: dict[str, Any] = await page.api.get(_place(page))
    await page.api.send("PUT", _place(page), {**document, "known_tools": tools}, number_in(dict(fields), "version"))
    return page.go(f"/ui/servers/{path_part(page.names['name'])}")


def _place(page: Page) -> str:
    return f"/mcp-servers/{path_part(page.names['name'])}"
