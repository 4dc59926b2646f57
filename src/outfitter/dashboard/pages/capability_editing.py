"""Capabilities made and changed: the form, deletion, and an earlier version put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from outfitter.dashboard.capability_form import document_of, texts_of
from outfitter.dashboard.form_values import Document, refuse
from outfitter.dashboard.listing import all_of
from outfitter.dashboard.looks import path_part
from outfitter.dashboard.page import number_in
from outfitter.dashboard.uses_form import REMOVED, Sent, rows_of
from outfitter.errors import Invalid, OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_CAPABILITIES = "/capabilities"


async def new(page: Page) -> Response:
    """An empty form."""
    return _form(page, {}, None, await _servers(page))


async def create(page: Page) -> Response:
    """A new capability; what is wrong is said above what was filled in."""
    return await _save(page, {})


async def edit(page: Page) -> Response:
    """The form of a capability as it is."""
    record = await page.api.get(_place(page), detail=True)
    return _form(page, record["document"], record["version"], await _servers(page))


async def change(page: Page) -> Response:
    """A capability with other content; refused when somebody else has changed it since."""
    return await _save(page, await page.api.get(_place(page)))


async def _save(page: Page, before: Mapping[str, Any]) -> Response:
    sent = Sent.of(await page.fields())
    problems, servers = list[Invalid](), await _servers(page)
    seen, find = number_in(sent.fields, "version"), sent.text("find")
    document = document_of(sent, before, servers, problems)
    if seen is not None:
        document["name"] = page.names["name"]
    if sent.text("look"):
        return _form(page, document, seen, servers, find=find)
    try:
        refuse(problems)
        if seen is None:
            await page.api.send("POST", _CAPABILITIES, document)
        else:
            await page.api.send("PUT", _place(page), document, seen)
    except OutfitterError as error:
        return _form(page, document, seen, servers, error=error)
    return page.go(f"/ui/capabilities/{path_part(document['name'])}")


def _place(page: Page) -> str:
    return f"{_CAPABILITIES}/{path_part(page.names['name'])}"


async def _servers(page: Page) -> list[Document]:
    return [one["document"] for one in await all_of(page, "/mcp-servers")]


def _form(
    page: Page,
    document: Mapping[str, Any],
    version: int | None,
    servers: list[Document],
    *,
    find: str = "",
    error: OutfitterError | None = None,
) -> Response:
    name = document.get("name", "")
    command = f"outfitter capabilities edit {name}" if version else "outfitter capabilities add NAME"
    return page.render(
        "capability_form.html", command=command,
        title=f"Edit {name}" if version else "New capability", version=version, fields=texts_of(document),
        rows=rows_of(document, servers, find), find=find, removed=REMOVED, error=error,
    )  # fmt: skip
