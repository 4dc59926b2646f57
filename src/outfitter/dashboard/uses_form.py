"""The servers that an agent or a capability uses, as a part of its form and back.

Every server of the registry is a row: used or not, under which alias, with which tools, and its headers by their
schema. All tools or only chosen ones is a choice of its own: who unticks the last one gets none, and not all. Known
tools are boxes to tick, other names and globs are lines, and so is what is left out. What a search does not show is
still in the form, so what was chosen before stays chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from outfitter.coordinator import MASK
from outfitter.dashboard.form_values import Document, part_of, put, read_value, shown
from outfitter.errors import Invalid

REMOVED = "(removed)"
"""What stands in a field of a header that this level removes."""
_FILTERS = ("tools", "enabled_tools", "disabled_tools")


@dataclass(frozen=True, slots=True)
class HeaderField:
    """One header of a server, as this level sets it."""

    name: str
    type: str
    description: str
    value: str
    is_sensitive: bool
    is_locked: bool
    is_kept: bool
    inherited: str


@dataclass(frozen=True, slots=True)
class ToolBox:
    """A known tool of a server."""

    name: str
    is_chosen: bool
    is_shown: bool


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A server of the registry in the form."""

    id: str
    name: str
    alias: str
    is_used: bool
    is_only: bool
    """Whether it has chosen tools, and not all."""
    tools: tuple[ToolBox, ...]
    patterns: str
    without: str
    headers: tuple[HeaderField, ...]
    is_shown: bool
    also: tuple[str, ...]
    """Further aliases of the same server, which the form leaves as they are."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A form that was sent: each field's last value, and all values of those that may stand there often."""

    fields: Mapping[str, str]
    every: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Sent:
        """The fields by name."""
        every: dict[str, list[str]] = defaultdict(list)
        for name, value in pairs:
            every[name].append(value.replace("\r\n", "\n"))  # as browsers send lines
        return cls({name: values[-1] for name, values in every.items()}, every)

    def text(self, name: str) -> str:
        """A field; empty when it was not sent."""
        return self.fields.get(name, "")


def rows_of(document: Mapping[str, Any], servers: Sequence[Document], find: str = "") -> list[ServerRow]:
    """Every server of the registry, those that are used first; ``find`` says which are shown."""
    before = part_of(document, "mcpServers")
    aliases = _aliases(before)
    rows = [_row(one, before, aliases.get(one["id"], []), find.strip().lower()) for one in servers]
    return sorted(rows, key=lambda row: not row.is_used)


def _aliases(uses: Mapping[str, Document]) -> Mapping[str, list[str]]:
    """Under which aliases each server of the registry is used. The form is about the first."""
    found: dict[str, list[str]] = defaultdict(list)
    for alias, use in uses.items():
        if use.get("ref"):
            found[use["ref"]].append(alias)
    return found


def _row(server: Document, uses: Mapping[str, Document], aliases: Sequence[str], wanted: str) -> ServerRow:
    name, use = str(server.get("name") or ""), uses[aliases[0]] if aliases else None
    included, excluded = _filter_of(use or {})
    chosen = set(included or ()).intersection(server.get("known_tools") or ())
    is_meant = wanted in server["id"].lower() or wanted in name.lower()
    tools = tuple(
        ToolBox(tool, tool in chosen, is_meant or wanted in tool.lower()) for tool in server.get("known_tools") or ()
    )
    given = part_of(use or {}, "headers")
    schema, defaults = part_of(server, "header_schema"), part_of(server, "default_headers")
    headers = tuple(
        _header(header, part_of(schema, header), given, defaults.get(header))
        for header in dict.fromkeys([*schema, *given])
    )
    return ServerRow(
        server["id"], name, aliases[0] if aliases else server["id"], use is not None, included is not None, tools,
        "\n".join(one for one in included or () if one not in chosen), "\n".join(excluded), headers,
        is_meant or any(tool.is_shown for tool in tools), tuple(aliases[1:]),
    )  # fmt: skip


def _header(name: str, rule: Document, given: Document, inherited: object) -> HeaderField:
    value = given.get(name, "")
    is_kept = value == MASK
    text = REMOVED if value is None else "" if is_kept else shown(value)
    return HeaderField(
        name, rule.get("type", "string"), rule.get("description", ""), text, bool(rule.get("sensitive")),
        bool(rule.get("locked")), is_kept, "" if inherited is None else shown(inherited),
    )  # fmt: skip


def _filter_of(use: Document) -> tuple[list[str] | None, list[str]]:
    """What a use includes (None: everything) and excludes, in whichever way it is written."""
    tools: Any = use.get("tools")
    if isinstance(tools, dict):
        parts = cast("Document", tools)
        return parts.get("include"), parts.get("exclude") or []
    return use.get("enabled_tools") if tools is None else tools, use.get("disabled_tools") or []


def read_uses(
    sent: Sent, before: Mapping[str, Any], servers: Sequence[Document], problems: list[Invalid]
) -> dict[str, Document]:
    """The servers that a form says are used; those that it does not show stay as they were."""
    edited = {aliases[0]: server_id for server_id, aliases in _aliases(before).items()}
    known = {one["id"] for one in servers}
    chosen = {one["id"]: one for one in servers if sent.text(f"use-{one['id']}")}
    uses: dict[str, Document] = {}
    for alias, use in before.items():
        server_id = edited.get(alias)
        if server_id not in known:
            uses[alias] = use
        elif server_id in chosen:
            _add_use(uses, chosen.pop(server_id), sent, use, problems)
    for server in chosen.values():
        _add_use(uses, server, sent, Document(), problems)
    return uses


def _add_use(
    uses: dict[str, Document], server: Document, sent: Sent, before: Document, problems: list[Invalid]
) -> None:
    alias = sent.text(f"alias-{server['id']}").strip() or server["id"]
    if alias in uses:
        problems.append(Invalid(f"the alias '{alias}' is given to two servers"))
    uses[alias] = _use(server, sent, before, problems)


def _use(server: Document, sent: Sent, before: Document, problems: list[Invalid]) -> Document:
    made = {**before, "ref": server["id"]}
    kept, schema = part_of(before, "headers"), part_of(server, "header_schema")
    headers: Document = {}
    for name in dict.fromkeys([*schema, *kept]):
        text = sent.text(f"header-{server['id']}-{name}")
        if text == REMOVED:
            headers[name] = None
        elif text:
            headers[name] = read_value(name, part_of(schema, name).get("type", "string"), text, problems)
        elif kept.get(name) == MASK:
            headers[name] = MASK
    put(made, "headers", headers)
    _put_tools(made, server["id"], sent, before)
    return made


def _put_tools(made: Document, server_id: str, sent: Sent, before: Document) -> None:
    """The filter: what is included (nothing is said for all), and what is left out."""
    excluded = sent.text(f"without-{server_id}").split()
    for name in _FILTERS:
        made.pop(name, None)
    if sent.text(f"only-{server_id}"):
        named = [*sent.every.get(f"tool-{server_id}", ()), *sent.text(f"tools-{server_id}").split()]
        old = _filter_of(before)[0] or []
        included = [*(one for one in old if one in named), *(one for one in dict.fromkeys(named) if one not in old)]
        made["tools"] = {"include": included, "exclude": excluded} if excluded else included
    elif excluded:
        made["tools"] = {"exclude": excluded}
