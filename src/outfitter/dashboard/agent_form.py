"""An agent's document as a form, and back: who it is, what it has from capabilities, and which servers it uses how.

Every server of the registry is a row: used or not, under which alias, with which tools, and its headers by their
schema. What the form does not show (rules, budgets, executor) stays as it was; so does a sensitive value left empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outfitter.coordinator import MASK
from outfitter.dashboard.form_values import Document, part_of, put, read_value
from outfitter.errors import Invalid

_TEXTS = ("description", "role", "system_prompt")
REMOVED = "(removed)"
"""What stands in a field of a header that this level removes."""


@dataclass(frozen=True, slots=True)
class HeaderField:
    """One header of a server, as this agent sets it."""

    name: str
    type: str
    description: str
    value: str
    is_sensitive: bool
    is_locked: bool
    is_kept: bool
    inherited: str


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A server of the registry in the form of an agent."""

    id: str
    name: str
    alias: str
    is_used: bool
    tools: str
    tool_names: tuple[str, ...]
    headers: tuple[HeaderField, ...] = field(default=())


def texts_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The plain fields of a document."""
    return {name: str(document.get(name) or "") for name in ("name", *_TEXTS)}


def rows_of(document: Mapping[str, Any], servers: Sequence[Mapping[str, Any]]) -> list[ServerRow]:
    """Every server of the registry, those that the agent uses first."""
    uses = {use.get("ref"): (alias, use) for alias, use in part_of(document, "mcpServers").items() if use.get("ref")}
    rows = [_row(one["document"], *uses.get(one["id"], ("", None))) for one in servers]
    return sorted(rows, key=lambda row: not row.is_used)


def _row(server: Document, alias: str, use: Document | None) -> ServerRow:
    given = part_of(use or {}, "headers")
    schema, defaults = part_of(server, "header_schema"), part_of(server, "default_headers")
    names = dict.fromkeys([*schema, *given])
    headers = tuple(_header(name, part_of(schema, name), given, defaults.get(name)) for name in names)
    known: Sequence[str] = server.get("known_tools") or ()
    return ServerRow(
        server["id"], server.get("name") or "", alias or server["id"], use is not None, _tools_text(use or {}),
        tuple(known), headers,
    )  # fmt: skip


def _header(name: str, rule: Document, given: Document, inherited: object) -> HeaderField:
    value = given.get(name, "")
    is_kept = value == MASK
    shown = REMOVED if value is None else "" if is_kept else value if isinstance(value, str) else json.dumps(value)
    told = "" if inherited is None else inherited if isinstance(inherited, str) else json.dumps(inherited)
    return HeaderField(
        name, rule.get("type", "string"), rule.get("description", ""), shown, bool(rule.get("sensitive")),
        bool(rule.get("locked")), is_kept, told,
    )  # fmt: skip


def _tools_text(use: Document) -> str:
    """A filter as lines: names and globs, those that are left out with a minus."""
    tools: Any = use.get("tools")
    if tools is None:
        return ""
    if isinstance(tools, list):
        return "\n".join(map(str, tools)) or "-*"  # pyright: ignore[reportUnknownArgumentType]
    included: list[str] = tools.get("include") or []
    excluded: list[str] = tools.get("exclude") or []
    return "\n".join([*included, *(f"-{one}" for one in excluded)])


def document_of(
    sent: Sequence[tuple[str, str]], before: Mapping[str, Any], servers: Sequence[Document], problems: list[Invalid]
) -> Document:
    """The document that a form describes. A field that cannot be read stays as it was typed, and is a problem."""
    fields, made = dict(sent), dict(before)
    for name in ("name", *_TEXTS):
        put(made, name, fields.get(name, "").strip())
    put(made, "capabilities", [value for name, value in sent if name == "capability"])
    old = part_of(before, "mcpServers")
    shown = {one["id"] for one in servers}
    uses = {alias: use for alias, use in old.items() if use.get("ref") not in shown}
    for server in servers:
        if fields.get(f"use-{server['id']}"):
            alias = fields.get(f"alias-{server['id']}", "").strip() or server["id"]
            uses[alias] = _use(server, fields, _old_use(old, server["id"]), problems)
    put(made, "mcpServers", uses)
    return made


def _old_use(uses: Document, server_id: str) -> Document:
    return next((use for use in uses.values() if use.get("ref") == server_id), Document())


def _use(server: Document, fields: Mapping[str, str], before: Document, problems: list[Invalid]) -> Document:
    made = {**before, "ref": server["id"]}
    kept = part_of(before, "headers")
    headers: Document = {}
    for name in dict.fromkeys([*part_of(server, "header_schema"), *kept]):
        text = fields.get(f"header-{server['id']}-{name}", "")
        if text == REMOVED:
            headers[name] = None
        elif text:
            kind = part_of(part_of(server, "header_schema"), name).get("type", "string")
            headers[name] = read_value(name, kind, text, problems)
        elif kept.get(name) == MASK:
            headers[name] = MASK
    put(made, "headers", headers)
    lines = fields.get(f"tools-{server['id']}", "").split()
    included = [line for line in lines if not line.startswith("-")]
    excluded = [line.removeprefix("-") for line in lines if line.startswith("-")]
    put(made, "tools", {"include": included, "exclude": excluded} if excluded else included)
    if excluded and not included:
        made["tools"] = {"exclude": excluded}
    return made
