"""Access: who may come in with which token, and who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outfitter.coordinator import ACTIONS, ROLES
from outfitter.dashboard.looks import path_part
from outfitter.errors import Forbidden, OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page


async def show(page: Page) -> Response:
    """Tokens, roles and the latest changes."""
    return await _show(page)


async def issue(page: Page) -> Response:
    """Make a token; its text is on the page that follows, this once."""
    form = await page.form()
    wanted = {name: form[name] for name in ("role", "label", "agent") if form.get(name)}
    try:
        made = await page.api.send("POST", "/tokens", wanted)
    except OutfitterError as error:
        return await _show(page, error=error)
    return await _show(page, made=made)


async def revoke(page: Page) -> Response:
    """Take a token back."""
    await page.form()
    await page.api.send("DELETE", f"/tokens/{path_part(page.names['id'])}")
    return page.go("/ui/access")


async def _show(page: Page, made: Any = None, error: OutfitterError | None = None) -> Response:  # noqa: ANN401 - JSON
    try:
        tokens = (await page.api.get("/tokens"))["items"]
    except Forbidden:
        tokens = None
    changes = await page.api.get("/changes", limit=50)
    return page.render(
        "access.html", command="outfitter tokens list", tokens=tokens, made=made,
        error=error, roles=ROLES, actions=ACTIONS, changes=changes["items"],
    )  # fmt: skip
