"""What can be done to an entry of any kind from its page: approve its program, delete it, put an earlier version back.

Each is refused when somebody else has changed the entry since it was looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from outfitter.dashboard.looks import path_part
from outfitter.dashboard.page import number_in

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page


@dataclass(frozen=True, slots=True)
class EntryActions:
    """The actions of one kind: its place in the API, and its page."""

    api: str
    page: str

    async def approve(self, page: Page) -> Response:
        """Let its program be started as it is now."""
        await self._send(page, "POST", "/approve")
        return page.go(f"{self.page}/{path_part(page.names['name'])}")

    async def delete(self, page: Page) -> Response:
        """Take it out of the registry."""
        await self._send(page, "DELETE", "")
        return page.go(self.page)

    async def restore(self, page: Page) -> Response:
        """Put an earlier version back."""
        await self._send(page, "POST", "/rollback")
        return page.go(f"{self.page}/{path_part(page.names['name'])}")

    async def _send(self, page: Page, method: str, what: str) -> None:
        form = await page.form()
        body = {"version": number_in(form, "to")} if what == "/rollback" else None
        await page.api.send(
            method, f"{self.api}/{path_part(page.names['name'])}{what}", body, number_in(form, "version")
        )
