"""Servers made and changed by a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from outfitter.dashboard.form_values import refuse
from outfitter.dashboard.looks import path_part
from outfitter.dashboard.page import number_in
from outfitter.dashboard.server_form import (
    FLAGS,
    PINS,
    SIGN_INS,
    TYPES,
    HeaderRow,
    VariableRow,
    document_of,
    fields_of,
    rows_of,
    variables_of,
)
from outfitter.errors import Invalid, OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_SERVERS = "/mcp-servers"


async def new(page: Page) -> Response:
    """An empty form."""
    return _form(page, {}, None)


async def create(page: Page) -> Response:
    """A new server; what is wrong is said above what was filled in."""
    sent = await page.fields()
    problems: list[Invalid] = []
    document = document_of(sent, {}, problems)
    try:
        refuse(problems)
        await page.api.send("POST", _SERVERS, document)
    except OutfitterError as error:
        return _form(page, document, None, error)
    return page.go(f"/ui/servers/{path_part(document['id'])}")


async def edit(page: Page) -> Response:
    """The form of a server as it is."""
    record = await _record(page)
    return _form(page, record["document"], record["version"])


async def change(page: Page) -> Response:
    """A server with other content; refused when somebody else has changed it since."""
    sent = await page.fields()
    name, seen = page.names["name"], number_in(dict(sent), "version")
    problems: list[Invalid] = []
    document = document_of(sent, (await _record(page))["document"], problems) | {"id": name}
    try:
        refuse(problems)
        await page.api.send("PUT", f"{_SERVERS}/{path_part(name)}", document, seen)
    except OutfitterError as error:
        return _form(page, document, seen, error)
    return page.go(f"/ui/servers/{path_part(name)}")


async def _record(page: Page) -> dict[str, Any]:
    return await page.api.get(f"{_SERVERS}/{path_part(page.names['name'])}", detail=True)


def _form(
    page: Page, document: Mapping[str, Any], version: int | None, error: OutfitterError | None = None
) -> Response:
    name = document.get("id", "")
    title = f"Edit {name}" if version else "New server"
    command = f"outfitter servers edit {name}" if version else "outfitter servers add ID --url URL"
    return page.render(
        "server_form.html", command=command, title=title, version=version,
        fields=fields_of(document), rows=rows_of(document), empty=HeaderRow(), types=TYPES, flags=FLAGS, error=error,
        variables=variables_of(document), no_variable=VariableRow(), sign_ins=SIGN_INS, pins=PINS,
    )  # fmt: skip
