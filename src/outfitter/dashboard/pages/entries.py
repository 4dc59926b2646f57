"""Servers and capabilities: the lists, and one of them with those who use it and how it came about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outfitter.dashboard.looks import path_part

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_PAGE = 100


async def servers(page: Page) -> Response:
    """Every server of the registry."""
    return await _list(page, "/mcp-servers", "servers.html", "outfitter servers list")


async def capabilities(page: Page) -> Response:
    """Every capability of the registry."""
    return await _list(page, "/capabilities", "capabilities.html", "outfitter capabilities list")


async def server(page: Page) -> Response:
    """One server."""
    return await show_server(page)


async def show_server(page: Page, probed: dict[str, Any] | None = None) -> Response:
    """One server; with how it answered, if it was tried just now."""
    command = "outfitter servers show" if probed is None else "outfitter servers probe"
    return await _one(page, "/mcp-servers", "server.html", command, probed=probed)


async def capability(page: Page) -> Response:
    """One capability."""
    return await _one(page, "/capabilities", "capability.html", "outfitter capabilities show")


async def _list(page: Page, path: str, template: str, command: str) -> Response:
    asked, cursor = page.asked("q"), page.asked("cursor")
    found = await page.api.get(path, limit=_PAGE, q=asked or None, cursor=cursor or None)
    return page.render(template, command=command, items=found["items"], following=found["next_cursor"], asked=asked)


async def _one(page: Page, path: str, template: str, command: str, **more: Any) -> Response:  # noqa: ANN401 - what the template shows
    name = page.names["name"]
    place = f"{path}/{path_part(name)}"
    record: dict[str, Any] = await page.api.get(place, detail=True)
    users = await page.api.get(f"{place}/users")
    history = await page.api.get(f"{place}/history", limit=20)
    return page.render(
        template, command=f"{command} {name}", record=record, document=record["document"], name=name,
        users=users["items"], history=history["items"], **more,
    )  # fmt: skip
