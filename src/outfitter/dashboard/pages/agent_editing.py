"""Agents made and changed: the form, and what it would do before it is saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outfitter.dashboard.agent_form import MODES, document_of, texts_of
from outfitter.dashboard.form_values import Document, refuse
from outfitter.dashboard.listing import all_of
from outfitter.dashboard.looks import path_part
from outfitter.dashboard.page import number_in
from outfitter.dashboard.uses_form import REMOVED, Sent, rows_of
from outfitter.errors import Invalid, OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_CHANGES = 20


@dataclass(frozen=True, slots=True)
class _Filled:
    """What stands in a form: the document, the version that was seen (None: a new one), what servers there are."""

    document: Mapping[str, Any]
    version: int | None
    servers: list[Document]
    find: str = ""


async def new(page: Page) -> Response:
    """An empty form."""
    return await _form(page, _Filled({}, None, await _servers(page)))


async def create(page: Page) -> Response:
    """A new agent, or what it would get."""
    return await _save(page, {})


async def edit(page: Page) -> Response:
    """The form of an agent as it is."""
    record = await _record(page)
    return await _form(page, _Filled(record["document"], record["version"], await _servers(page)))


async def change(page: Page) -> Response:
    """An agent with other content, or what that would do."""
    return await _save(page, (await _record(page))["document"])


async def _record(page: Page) -> dict[str, Any]:
    return await page.api.get(f"/agents/{path_part(page.names['name'])}/document", detail=True)


async def _save(page: Page, before: Mapping[str, Any]) -> Response:
    """Keep what was sent, or with ``preview`` say what it would do. The version that was seen stands in the form."""
    sent = Sent.of(await page.fields())
    problems, servers = list[Invalid](), await _servers(page)
    seen, find = number_in(sent.fields, "version"), sent.text("find")
    document = document_of(sent, before, servers, problems)
    if seen is not None:
        document["name"] = page.names["name"]
    filled = _Filled(document, seen, servers, find)
    if sent.text("look"):
        return await _form(page, filled)
    try:
        refuse(problems)
        if sent.text("preview"):
            trial = {"kind": "agents", "id": document.get("name", ""), "document": document}
            plan = await page.api.send("POST", "/resolve", {"agent_name": trial["id"], "changes": [trial]})
            return await _form(page, filled, plan=plan)
        if seen is None:
            await page.api.send("POST", "/agents", document)
        else:
            await page.api.send("PUT", f"/agents/{path_part(document['name'])}", document, seen)
    except OutfitterError as error:
        return await _form(page, filled, error=error)
    return page.go(f"/ui/agents/{path_part(document['name'])}")


async def _servers(page: Page) -> list[Document]:
    return [one["document"] for one in await all_of(page, "/mcp-servers")]


async def _form(
    page: Page,
    filled: _Filled,
    *,
    error: OutfitterError | None = None,
    plan: Any = None,  # noqa: ANN401 - JSON
) -> Response:
    document, version = filled.document, filled.version
    name = document.get("name", "")
    capabilities = await all_of(page, "/capabilities")
    history: list[Document] = []
    if version:
        history = (await page.api.get(f"/agents/{path_part(name)}/history", limit=_CHANGES))["items"]
    return page.render(
        "agent_form.html", command=f"outfitter agents edit {name}" if version else "outfitter agents add NAME",
        title=f"Edit {name}" if version else "New agent", version=version, fields=texts_of(document),
        rows=rows_of(document, filled.servers, filled.find), find=filled.find,
        capabilities=[one["id"] for one in capabilities], chosen=document.get("capabilities") or [], removed=REMOVED,
        modes=MODES, error=error, plan=plan, history=history,
    )  # fmt: skip
