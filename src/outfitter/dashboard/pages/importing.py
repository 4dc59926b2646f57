"""Import: the servers of another program's file, looked at before they are added. Nothing is started.

What was pasted may hold secrets: it is sent back only beside what is wrong with it. What is shown of a file that can be
read has references in their place, and that is what is added.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outfitter.dashboard.looks import path_part
from outfitter.dashboard.page import number_in
from outfitter.dashboard.uploads import NAMED
from outfitter.errors import Invalid, OutfitterError
from outfitter.formats import Client

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_CLIENTS = tuple(client.value for client in Client)
_NOT_TEXT = "\ufffd"


@dataclass(frozen=True, slots=True)
class _Done:
    """What came of adding one entry."""

    id: str
    error: OutfitterError | None = None


async def show(page: Page) -> Response:
    """The form."""
    return _form(page)


async def preview(page: Page) -> Response:
    """What the file would add; what is wrong with it beside what was pasted."""
    form = await page.form()
    has_file = bool(form.get(f"file{NAMED}"))
    text = form.get("file", "") if has_file else form.get("text", "")
    asked = {"text": text, "filename": form.get(f"file{NAMED}", "")[-500:] if has_file else ""}
    if form.get("client"):
        asked["client"] = form["client"]
    try:
        if has_file and _NOT_TEXT in text:
            raise Invalid("the file is not text in UTF-8", hint="save it as UTF-8, or paste its text")
        found = await page.api.send("POST", "/import", asked)
    except OutfitterError as error:
        return _form(page, text, form.get("client", ""), error)
    return page.render(
        "import.html",
        command=f"outfitter servers import {shlex.quote(asked['filename'] or 'FILE')} --dry-run",
        found=found,
        clients=_CLIENTS,
    )


async def apply(page: Page) -> Response:
    """Add those that were chosen, each by itself; what is refused is said, the others are there."""
    fields = await page.fields()
    form = dict(fields)
    chosen = [value for name, value in fields if name == "pick"]
    if not chosen:
        return _form(page, error=Invalid("nothing was chosen", hint="tick what is to be added"))
    done = [await _add(page, one, form) for one in chosen]
    status = 422 if any(one.error is not None for one in done) else 200
    return page.render(
        "import.html", status=status, command="outfitter servers import FILE", done=done, clients=_CLIENTS
    )


async def _add(page: Page, server: str, form: Mapping[str, str]) -> _Done:
    try:
        document = _read(server, form.get(f"document-{server}", ""))
        seen = number_in(form, f"version-{server}")
        if seen is None:
            await page.api.send("POST", "/mcp-servers", document)
        else:
            await page.api.send("PUT", f"/mcp-servers/{path_part(server)}", document, seen)
    except OutfitterError as error:
        return _Done(server, error)
    return _Done(server)


def _read(server: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Invalid(f"the form has no document of '{server}'", hint="load the page again")
    return {**found, "id": server}


def _form(page: Page, text: str = "", client: str = "", error: OutfitterError | None = None) -> Response:
    return page.render(
        "import.html", command="outfitter servers import FILE --dry-run",
        text=text, client=client, error=error, clients=_CLIENTS,
    )  # fmt: skip
