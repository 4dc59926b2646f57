"""Whole lists of the registry, page by page as the API has them: for forms that offer everything there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outfitter.dashboard.page import Page

_PAGE, _MOST = 500, 5000


async def all_of(page: Page, path: str) -> list[dict[str, Any]]:
    """Every record of a list, at most so many as a form can hold."""
    found: list[dict[str, Any]] = []
    cursor = None
    while len(found) < _MOST:
        answer = await page.api.get(path, limit=_PAGE, cursor=cursor)
        found += answer["items"]
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    return found
