"""Changes tried before anything is saved: at every level from the registry's default to one run, for one agent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outfitter.dashboard.differences import differences
from outfitter.dashboard.form_values import Document, part_of, read_json, refuse
from outfitter.dashboard.looks import path_part, pretty
from outfitter.errors import Invalid, NotFound, OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_RUN = "run"
_NO_RUN: Document = {"mcp_headers": {}}
_LEVELS = {"mcp-servers": "registry", "capabilities": "capability", "agents": "agent"}


@dataclass(frozen=True, slots=True)
class Level:
    """One document that says something about what the agent gets, as it is and as it would be."""

    key: str
    title: str
    kind: str
    id: str
    stored: Document
    text: str

    @property
    def is_changed(self) -> bool:
        """Whether it is open on the page: somebody has changed it."""
        return self.text.strip() != pretty(self.stored)


async def show(page: Page) -> Response:
    """Everything that bears on the agent, to be changed and tried."""
    return _page(page, await _levels(page, {}))


async def attempt(page: Page) -> Response:
    """What the changes would do; nothing is stored."""
    form = {name: value.replace("\r\n", "\n") for name, value in (await page.form()).items()}
    levels = await _levels(page, form)
    problems: list[Invalid] = []
    try:
        documents = {one.key: read_json(one.title, one.text, problems) for one in levels}
        refuse(problems)
        _set_header(documents, form)
        levels = [_with(one, documents[one.key]) for one in levels]
        asked = {"agent_name": page.names["name"]}
        now = await page.api.send("POST", "/resolve", asked)
        more = {"changes": _changes(levels, documents), "run": documents[_RUN]}
        then = await page.api.send("POST", "/resolve", asked | more)
    except OutfitterError as error:
        return _page(page, levels, form=form, error=error)
    return _page(page, levels, form=form, found={"before": now["before"], "after": then["after"]})


def _changes(levels: list[Level], documents: Mapping[str, Any]) -> list[Document]:
    return [
        {"kind": one.kind, "id": one.id, "document": documents[one.key]}
        for one in levels
        if one.key != _RUN and documents[one.key] != one.stored
    ]


def _with(level: Level, document: Any) -> Level:  # noqa: ANN401 - JSON
    return Level(level.key, level.title, level.kind, level.id, level.stored, pretty(document))


def _set_header(documents: dict[str, Any], form: Mapping[str, str]) -> None:
    """Put the header of the short form into the document of its level."""
    level, alias, name, text = (form.get(key, "").strip() for key in ("level", "alias", "header", "value"))
    if not name:
        return
    if not isinstance(documents.get(level), dict):
        raise Invalid("choose the level at which the header is set")
    document: Document = documents[level]
    value = _value(text)
    if level == _RUN:
        document.setdefault("mcp_headers", {}).setdefault(alias, {})[name] = value
    elif level.startswith("mcp-servers/"):
        document.setdefault("default_headers", {})[name] = value
    else:
        use = document.setdefault("mcpServers", {}).setdefault(alias, {})
        use.setdefault("headers", {})[name] = value


def _value(text: str) -> Any:  # noqa: ANN401 - JSON
    """An object, a list or null when it is written as one, else the text."""
    if text[:1] in {"{", "["} or text == "null":
        try:
            return json.loads(text)
        except ValueError as error:
            raise Invalid(f"the value is no JSON ({error})") from None
    return text


async def _levels(page: Page, form: Mapping[str, str]) -> list[Level]:
    """The documents of the agent's servers, of its capabilities, its own, and a run."""
    name = page.names["name"]
    agent: Document = await page.api.get(f"/agents/{path_part(name)}/document")
    shared = {one: await _document(page, "capabilities", one) for one in agent.get("capabilities") or ()}
    uses = [use for one in (agent, *shared.values()) for use in part_of(one, "mcpServers").values()]
    refs = dict.fromkeys(use["ref"] for use in uses if use.get("ref"))
    servers = [_level("mcp-servers", ref, await _document(page, "mcp-servers", ref), form) for ref in refs]
    capabilities = [_level("capabilities", one, document, form) for one, document in shared.items()]
    run = Level(_RUN, "run", _RUN, "", _NO_RUN, form.get(f"doc-{_RUN}", pretty(_NO_RUN)))
    return [*servers, *capabilities, _level("agents", name, agent, form), run]


async def _document(page: Page, kind: str, name: str) -> Document:
    try:
        return await page.api.get(f"/{kind}/{path_part(name)}")
    except NotFound:
        return {}


def _level(kind: str, name: str, document: Document, form: Mapping[str, str]) -> Level:
    key = f"{kind}/{name}"
    return Level(key, f"{_LEVELS[kind]} {name}", kind, name, document, form.get(f"doc-{key}", pretty(document)))


def _page(
    page: Page,
    levels: list[Level],
    *,
    form: Mapping[str, str] | None = None,
    error: OutfitterError | None = None,
    found: Mapping[str, Any] | None = None,
) -> Response:
    name = page.names["name"]
    return page.render(
        "try.html", command=f"outfitter resolve {name} --change FILE",
        name=name, levels=levels, form=form or {}, error=error, found=found,
        changes=None if found is None else differences(found["before"], found["after"]),
        aliases=_aliases(levels, name),
    )  # fmt: skip


def _aliases(levels: list[Level], name: str) -> list[str]:
    """Under which names the agent has its servers."""
    uses = [part_of(one.stored, "mcpServers") for one in levels if one.kind in {"agents", "capabilities"}]
    return sorted({alias for use in uses for alias in use}) or [name]
